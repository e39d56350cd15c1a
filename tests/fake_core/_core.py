"""A core in pure Python for tests of the execution side: cells that work, and cells that do not.

The tests copy it into a folder with the package's own worker and start workers there. Every worker
appends a line to the file named by FAKE_LOG. A cell named by FAKE_WELL behaves.
"""

import json
import os
import signal
import sys
import time

counting = False
abi_version = 1

#: case, contender, behaviour, then what differs from the default description.
CELLS = [
    ("good/1", "a", "good", {"quick": True}),
    ("good/1", "b", "good", {}),
    ("good/1", "c", "good", {}),
    ("good/10", "a", "good", {}),
    ("good/2", "a", "good", {}),
    ("good/2", "jemalloc", "good", {}),
    ("two", "a", "good", {"cpus": 2}),
    ("stepped", "a", "good", {"step": 1000}),
    ("threaded", "a", "threads", {"thread_mode": "threaded"}),
    ("threads", "a", "threads", {}),
    ("threads", "b", "good", {}),
    ("hang", "a", "hang", {}),
    ("hang", "b", "good", {}),
    ("stuck", "a", "stuck", {}),
    ("orphan", "a", "orphan", {}),
    ("segv", "a", "segv", {}),
    ("killed", "a", "killed", {}),
    ("late", "a", "late", {}),
    ("exit", "a", "exit", {}),
    ("raises", "a", "raises", {}),
    ("verify", "a", "verify", {}),
    ("invalid", "a", "invalid", {}),
    ("gone", "a", "gone", {"available": False, "reason": "no such device here"}),
    ("clock_back", "a", "clock_back", {}),
    ("clock_still", "a", "clock_still", {}),
    ("drift", "a", "drift", {}),
    ("miscounts", "a", "miscounts", {}),
    ("python", "a", "good", {"python": True}),
]
BEHAVIOUR = {f"fake/{case}@{contender}": how for case, contender, how, _ in CELLS}
LEDGER = {
    "heap_allocs": 2,
    "resource_allocs": 1,
    "invoker_frames": 1,
    "indirect_calls": 9,
    "atomic_rmws": 0,
    "seq_cst_stores": 5,
    "ref_changes": 0,
    "mutex_pairs": 3,
    "posts": 0,
    "syscalls": 0,
    "heap_bytes": 96,
    "fifo_pushes": 0.5,
}


class CoreError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def build():
    return {"version": "1", "compiler": "none", "flags": "", "build_id": os.environ["FAKE_BUILD"]}


def suites():
    return [{"name": "fake", "summary": "cells for tests", "baselines": ["missing", "b", "a"]}]


def cases():
    return [
        {
            "id": f"fake/{case}@{contender}",
            "suite": "fake",
            "case": case,
            "contender": contender,
            "summary": how,
            "unit": "ns/op",
            "direction": "lower",
            "thread_mode": "single",
            "step": 1,
            "quick": False,
            "cpus": 1,
            "bytes_per_op": 0,
            "python": False,
            "latency": False,
            "ledger": None,
            "available": True,
            "reason": None,
            "plugin": None,
            **more,
        }
        for case, contender, how, more in CELLS
    ]


def pace():
    return 2_000_000


def single_threaded():
    return True


class Run:
    def __init__(self, cell_id):
        if cell_id not in BEHAVIOUR:
            raise LookupError(f"there is no cell '{cell_id}'")
        well = cell_id in os.environ.get("FAKE_WELL", "").split()
        self._how = "good" if well else BEHAVIOUR[cell_id]
        self._samples = 0
        self._log(cell_id)
        if self._how == "invalid":
            raise CoreError("invalid", "this process has made a thread")
        if self._how == "exit":
            os._exit(3)
        if self._how == "raises":
            raise ZeroDivisionError("no good")

    def _log(self, cell_id):
        line = {
            "cell": cell_id,
            "pid": os.getpid(),
            "group": os.getpgid(0),
            "counting": counting,
            "cpus": sorted(os.sched_getaffinity(0)),
            "sigint_ignored": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
            "env": dict(os.environ),
            "modules": [name for name in ("numpy", "rich", "threading") if name in sys.modules],
        }
        with open(os.environ["FAKE_LOG"], "a") as log:
            log.write(json.dumps(line) + "\n")

    def calibrate(self, target_ns):
        return target_ns // 100

    def measure(self, ops, samples, flags):
        how = self._how
        if how in ("hang", "orphan"):
            if how == "orphan":  # A child that outlives the worker's own death, unless killed.
                child = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
                with open(os.environ["FAKE_LOG"], "a") as log:
                    log.write(json.dumps({"cell": "child", "pid": child}) + "\n")
            while True:
                time.sleep(1)
        if how == "stuck":  # As C code that never comes back: no signal handler of Python runs.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
            while True:
                pass
        if how == "segv":
            os.kill(os.getpid(), signal.SIGSEGV)
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        bits = {"threads": 1, "clock_back": 7, "clock_still": 11}.get(how, 3)
        for nth in range(len(samples)):
            self._samples += 1
            slower = 2**self._samples if how == "drift" else 1
            samples[nth] = ops * 100 * slower + max(0, self._samples - 4)  # 3 are the warm-up's
            flags[nth] = bits
        return len(samples)

    def verify(self):
        if self._how == "verify":
            raise CoreError("failed", "the sum is 3 instead of 4")

    def counters(self):
        return {}

    def ledger(self, ops):
        if not counting:
            raise ValueError("this module does not count")
        if self._how == "miscounts":
            raise CoreError("failed", "the counts are not the same twice")
        return {**LEDGER, "ops_asked": ops}

    def usage(self):
        return {"samples": self._samples, "thread_cpu_ns": 7 * self._samples}

    def facts(self):
        return {"maker": "tests"}

    def close(self):
        if self._how == "late" and self._samples:
            os.kill(os.getpid(), signal.SIGABRT)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
