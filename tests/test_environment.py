"""Facts and the environment of workers."""

from __future__ import annotations

import json
import os
from pathlib import Path

from capybench import environment


def test_allocator_and_preload_variables_do_not_reach_workers() -> None:
    env = {
        "PATH": "/bin",
        "LD_PRELOAD": "x.so",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_": "",
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
        "MY_LD_PRELOAD": "kept",
        "LD_LIBRARY_PATH": "/opt",
    }
    made = environment.worker_environment(env)
    assert set(made) == {"PATH", "MY_LD_PRELOAD", "LD_LIBRARY_PATH", environment.PADDING_VARIABLE}
    assert list(environment.influences(env)) == [
        "GLIBC_TUNABLES",
        "LD_PRELOAD",
        "MALLOC_",
        "MALLOC_ARENA_MAX",
    ]
    kept = environment.worker_environment(env, keep=True)
    assert env.items() <= kept.items()


def test_room_for_jemalloc_is_added_to_what_is_kept() -> None:
    plain = environment.worker_environment({}, static_tls=True)
    assert plain["GLIBC_TUNABLES"] == environment.STATIC_TLS
    env = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    assert environment.worker_environment(env, static_tls=True) == {
        "GLIBC_TUNABLES": environment.STATIC_TLS,
        environment.PADDING_VARIABLE: "",
    }
    kept = environment.worker_environment(env, keep=True, static_tls=True)
    assert kept["GLIBC_TUNABLES"] == f"glibc.malloc.tcache_count=0:{environment.STATIC_TLS}"
    own = {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=8192"}
    assert environment.worker_environment(own, keep=True, static_tls=True).items() >= own.items()


def test_padding_and_library_folders(tmp_path: Path) -> None:
    lib = tmp_path / "cmeel.prefix" / "lib"
    lib.mkdir(parents=True)
    folders = environment.library_folders([str(tmp_path), "", "/nowhere", str(tmp_path)])
    assert folders == [str(lib)]
    made = environment.worker_environment({}, padding=100, folders=folders)
    assert len(made[environment.PADDING_VARIABLE]) == 100
    assert made[environment.LIBRARY_PATH_VARIABLE] == str(lib)
    mine = {environment.LIBRARY_PATH_VARIABLE: "/mine"}
    made = environment.worker_environment(mine, folders=folders)
    assert made[environment.LIBRARY_PATH_VARIABLE] == f"/mine:{lib}"


def test_facts_are_plain_and_what_is_missing_has_a_reason() -> None:
    for facts in (environment.fingerprint(), environment.volatile()):
        assert json.loads(json.dumps(facts)) == facts
        missing = {name for name, value in facts.items() if value is None}
        assert missing == set(facts["missing"])
        assert all(facts["missing"].values())


def test_fingerprint_names_the_machine_and_does_not_change() -> None:
    facts = environment.fingerprint()
    assert facts == environment.fingerprint()
    assert facts["libc"].startswith("glibc ")
    assert facts["kernel"] == f"Linux {os.uname().release}"
    assert facts["cpus"] == os.cpu_count()


def test_volatile_counts_only_grow() -> None:
    before, after = environment.volatile(), environment.volatile()
    assert before["affinity"] == sorted(os.sched_getaffinity(0))
    for name, value in before["cpu_time_ms"].items():
        assert after["cpu_time_ms"][name] >= value or name in ("idle", "iowait")
