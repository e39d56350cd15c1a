"""Records, file, and summaries: computed from samples, whatever a file claims."""

from __future__ import annotations

import copy
import json
import math
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import synthetic

from capybench import results
from capybench.errors import CapybenchError
from capybench.results import ResultError, RunResult, load

SCHEMA = json.loads((files("capybench") / "schema" / "capybench-1.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def one(cell: dict[str, Any]) -> results.CellResult:
    return RunResult.from_dict(synthetic.document(cell)).cells[0]


def test_the_schema_is_a_schema_and_accepts_what_is_written() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for blocks in (1, 3, 10):
        document = synthetic.suites(blocks)
        VALIDATOR.validate(document)
        VALIDATOR.validate(RunResult.from_dict(document).to_dict())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "capybench/2"),
        (("cells", 0, "status"), "fine"),
        (("cells", 0, "direction"), "up"),
        (("cells", 0, "unit"), "parsecs"),
        (("cells", 0, "ops"), None),
        (("cells", 0, "processes", 0, "samples_ns", 0), 1.5),
        (("cells", 0, "processes", 0, "samples_ns", 0), "1"),
        (("cells", 0, "id"), 3),
    ],
)
def test_schema_and_reader_refuse_alike(path: tuple[Any, ...], value: object) -> None:
    document = synthetic.document(synthetic.cell())
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)
    if path[-1] == "ops":  # The reader marks the cell instead of refusing the file.
        assert one(document["cells"][0]).status == "invalid"
        return
    with pytest.raises(ResultError):
        RunResult.from_dict(document)


def test_round_trip_keeps_unknown_fields_at_every_level() -> None:
    document = synthetic.suites()
    document["later"] = {"a": [1, None]}
    document["run"]["later"] = "b"
    document["machine"]["later"] = 3
    document["cells"][0]["later"] = [1.5]
    document["cells"][0]["processes"][1]["later"] = {"c": True}
    written = RunResult.from_dict(copy.deepcopy(document)).to_dict()
    for cell in written["cells"]:
        assert cell.pop("summary")["n"] >= 0
    assert written == document
    again = RunResult.from_dict(written)
    assert again == RunResult.from_dict(document)


def test_records_are_frozen() -> None:
    result = RunResult.from_dict(synthetic.suites())
    with pytest.raises(AttributeError):
        result.cells[0].status = "ok"  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        result.cells[0].other = 1  # type: ignore[attr-defined]


def test_summary_is_the_median_of_process_medians() -> None:
    samples = [[100, 900, 110], [130, 120, 140], [100, 100, 160]]
    summary = one(synthetic.cell(samples=samples, ops=10)).summary
    # Process medians 110, 130, 100: their median 110, deviations 0, 20, 10.
    assert summary.median == 11.0
    assert summary.mad == pytest.approx(1.4826)
    assert (summary.low, summary.high, summary.n) == (10.0, 13.0, 3)
    assert (summary.ci_low, summary.ci_high, summary.ci_level) == (None, None, None)
    assert summary.reason == "an interval needs 6 processes, there are 3"


def test_a_files_summary_and_ratio_are_never_trusted() -> None:
    cell = synthetic.cell(summary={"median": 1e9, "n": 77}, ratio={"ratio": 0.1})
    result = one(cell)
    assert result.summary.median == 20.0
    assert result.summary.n == 3
    assert "ratio" not in result.to_dict()


def test_from_six_processes_on_there_is_an_interval_with_its_coverage() -> None:
    samples = [[1000 + 10 * block] for block in range(6)]
    summary = one(synthetic.cell(samples=samples, ops=1)).summary
    assert (summary.ci_low, summary.ci_high) == (1000, 1050)
    assert summary.ci_level == 1 - 2 / 64
    assert summary.reason is None


@pytest.mark.parametrize(
    ("unit", "bytes_per_op", "expected"),
    [("ns/op", 0, 2e6), ("ops/s", 0, 500), ("items/s", 0, 500), ("bytes/s", 64, 32_000)],
)
def test_metrics_of_a_sample(unit: str, bytes_per_op: int, expected: float) -> None:
    cell = synthetic.cell(
        samples=[[10_000_000]], ops=5, unit=unit, direction="higher", bytes_per_op=bytes_per_op
    )
    assert one(cell).summary.median == pytest.approx(expected)


# Inputs that must not break it.


def test_zero_ns_is_below_clock_resolution() -> None:
    result = RunResult.from_dict(
        synthetic.document(
            synthetic.cell(samples=[[0, 0]] * 6),
            synthetic.cell("coroutine/run_async/depth1@callback", samples=[[5, 5]] * 6),
        )
    )
    zero, other = result.cells
    assert zero.summary.median == 0
    assert zero.summary.notes == (results.BELOW_RESOLUTION,)
    ratio = result.ratio_of(other, zero)
    assert ratio.value is None
    assert ratio.reason == "a value is below clock resolution"


def test_zero_ns_gives_no_rate() -> None:
    cell = one(synthetic.cell(samples=[[0], [10]], unit="ops/s", direction="higher"))
    assert cell.summary.median is None
    assert cell.summary.reason == results.BELOW_RESOLUTION


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "null"])
def test_tokens_that_are_no_numbers_are_read_marked_and_written_as_null(
    tmp_path: Path, token: str
) -> None:
    path = tmp_path / "run.json"
    text = json.dumps(synthetic.document(synthetic.cell(samples=[[11, 22, 33]])))
    path.write_text(text.replace("22", token))
    result = load(path)
    cell = result.cells[0]
    assert cell.status == "invalid"
    assert cell.reason == "sample 2 of block 0 is not a number"
    assert cell.summary.median is None
    result.save(path)
    written = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert written["cells"][0]["processes"][0]["samples_ns"] == [11, None, 33]
    assert written["cells"][0]["reason"]
    VALIDATOR.validate(written)


def test_nan_anywhere_else_becomes_null(tmp_path: Path) -> None:
    document = synthetic.document(synthetic.cell())
    document["machine"]["before"] = {"load": [math.nan, 1.0], "steal": math.inf}
    path = tmp_path / "run.json"
    RunResult.from_dict(document).save(path)
    written = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert written["machine"]["before"] == {"load": [None, 1.0], "steal": None}


def test_a_single_sample_has_no_spread() -> None:
    summary = one(synthetic.cell(samples=[[1234]], ops=1)).summary
    assert (summary.median, summary.mad, summary.n) == (1234, None, 1)


def test_identical_samples_have_an_interval_of_a_clock_step() -> None:
    summary = one(synthetic.cell(samples=[[1000]] * 8, ops=10)).summary
    assert summary.mad == 0
    assert (summary.ci_low, summary.ci_high) == pytest.approx((99.9, 100.1))


def test_processes_may_have_unequal_numbers_of_samples_and_none() -> None:
    summary = one(synthetic.cell(samples=[[10], [20, 30], []], ops=1)).summary
    assert (summary.median, summary.n) == (17.5, 2)


def test_sides_with_unequal_blocks_are_paired_over_the_common_ones() -> None:
    other = synthetic.cell("coroutine/run_async/depth1@callback", samples=[[10_000]] * 7)
    result = RunResult.from_dict(synthetic.document(synthetic.cell(), other))
    ratio = result.ratio_of(result.cells[1], result.cells[0])
    assert ratio.n == 3
    assert ratio.value == pytest.approx(0.5)


@pytest.mark.parametrize("sample", [2**63, 2**64, 10**30, 1e300])
def test_huge_samples_saturate_with_a_note(sample: float) -> None:
    cell = one(synthetic.cell(samples=[[sample]] * 3, ops=1))
    assert cell.status == "ok"
    assert cell.summary.median == float(min(sample, 2**64 - 1))
    assert cell.summary.notes == ((results.SATURATED,) if sample > 2**64 - 1 else ())


def test_negative_samples_make_the_cell_invalid() -> None:
    cell = one(synthetic.cell(samples=[[5, -5]]))
    assert (cell.status, cell.reason) == ("invalid", "sample 2 of block 0 is negative")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ops": 0}, "ops of a sample is missing"),
        ({"ops": 2**64}, "beyond 2^63"),
        ({"processes": []}, "no samples"),
        ({"unit": "bytes/s"}, "bytes of an op is missing"),
    ],
)
def test_ok_cells_that_give_no_number_are_invalid(change: dict[str, Any], reason: str) -> None:
    cell = one({**synthetic.cell(), **change})
    assert cell.status == "invalid"
    assert cell.reason is not None
    assert reason in cell.reason


ODD_NAMES = [
    "x" * 64 + "1",
    "x" * 64 + "2",
    "a b\\c:d[e]",
    "rocket 🚀",
    "\u00e9",
    "e\u0301",
    "Case",
    "case",
    "y" * 300,
    "\x1b[31mred",
    "\ud800",
]


def test_identity_is_the_full_string(tmp_path: Path) -> None:
    cells = [synthetic.cell(f"suite/{name}@task") for name in ODD_NAMES]
    path = tmp_path / "run.json"
    RunResult.from_dict(synthetic.document(*cells)).save(path)
    read = load(path)
    assert [cell.case for cell in read.cells] == ODD_NAMES
    assert read.cell("suite/case@task").case == "case"
    with pytest.raises(LookupError, match="CASE"):
        read.cell("suite/CASE@task")


def test_a_cell_twice_is_refused() -> None:
    with pytest.raises(ResultError, match="twice"):
        RunResult.from_dict(synthetic.document(synthetic.cell(), synthetic.cell()))


# Files.


def test_every_truncation_names_file_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    RunResult.from_dict(synthetic.document(synthetic.cell())).save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole.rstrip()) - 1, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ResultError) as caught:
            load(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: ")
        assert f" of {length}" in message
        assert " at byte " in message
        assert "\n" not in message


def test_the_offset_counts_bytes_not_characters(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"é🚀": ]')
    with pytest.raises(ResultError, match="at byte 11 of 12"):
        load(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfe{}", "not UTF-8 at byte 0 of 4"),
        (b"[]", "the document is a list, not an object"),
        (b"{}", "its schema is None"),
        (b'{"schema": "capybench/99"}', "this version reads 'capybench/1'"),
        (b'{"schema": "capybench/1"}', "'cells' is missing, not a list"),
        (b'{"schema": "capybench/1", "cells": [3]}', r"cells\[0\] is a number, not an object"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
    ],
)
def test_files_that_are_no_results(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(data)
    with pytest.raises(ResultError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert isinstance(caught.value, CapybenchError)
    assert caught.value.exit_code == 2


def test_older_schemas_are_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    def migrate(data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "schema": "capybench/1"}

    monkeypatch.setitem(results.MIGRATIONS, "capybench/0", migrate)
    old = {**synthetic.document(synthetic.cell()), "schema": "capybench/0"}
    assert RunResult.from_dict(old).cells[0].summary.median == 20.0


def test_saving_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(results.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        RunResult.from_dict(synthetic.suites()).save(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_saved_file_is_readable_like_any_other(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    path = tmp_path / "new" / "run.json"
    RunResult.from_dict(synthetic.suites()).save(path)
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_file_has_a_line_a_cell_and_stays_small(tmp_path: Path) -> None:
    samples = synthetic.noisy(20.0, 20, ops=2_500_000)
    samples = [[*row, *row][:5] for row in samples]
    text = RunResult.from_dict(synthetic.document(synthetic.cell(samples=samples))).to_json()
    (line,) = (line for line in text.splitlines() if "samples_ns" in line)
    assert len(line) < 32_768
    assert json.loads(text)["cells"][0]["ops"] == 1000


def test_same_document_gives_the_same_bytes() -> None:
    texts = {RunResult.from_dict(synthetic.suites(20)).to_json() for _ in range(3)}
    assert len(texts) == 1


# Baselines.


def test_baselines_by_default_and_by_choice() -> None:
    result = RunResult.from_dict(synthetic.suites())
    default = result.baselines()
    assert default["frame_alloc", "chain66"].contender == "malloc"
    chosen = result.baselines("recycling")
    assert list(chosen) == [("frame_alloc", "chain66")]
    with pytest.raises(results.UnknownContenderError, match=r"'tcmalloc'; present: callback, jem"):
        result.baselines("tcmalloc")


def test_ratios_between_units_are_refused() -> None:
    rate = synthetic.cell("a/b@c", unit="ops/s", direction="higher")
    result = RunResult.from_dict(synthetic.document(synthetic.cell(), rate))
    with pytest.raises(ValueError, match="ns/op"):
        result.ratio_of(result.cells[1], result.cells[0])


def test_event_counts_come_from_counters_then_ledger() -> None:
    cell = one(synthetic.cell(counters={"heap_allocs_per_op": 1.5}))
    assert cell.per_op("heap_allocs") == 1.5
    assert cell.per_op("indirect_calls") == 7
    assert cell.per_op("nothing") is None


def test_a_repeat_in_the_same_block_counts_in_place_of_the_first() -> None:
    data = synthetic.cell(samples=[[10_000], [20_000]])
    data["processes"].append(synthetic.process(1, [30_000]))
    assert one(data).by_block() == {0: 10.0, 1: 30.0}
