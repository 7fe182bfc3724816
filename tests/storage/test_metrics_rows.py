"""Rows of metrics.jsonl: valid contents of a line, detection of single flipped bits, and speed of reading."""

import json
import random
from pathlib import Path

import pytest

from dmlcore.monitoring.health import watch
from dmlcore.spec import RunSpec
from dmlcore.storage import metrics_rows
from pages.shared.state.run_reader import RunHistory
from tests.members import in_one_case

STEP = {"kind": "step", "step": 3, "loss": 0.1 + 0.2, "nonzero": 1.0, "active": 0.25}
MEASURE = {
    "kind": "measure",
    "step": 10,
    "spread": 0.5,
    "triplets": 40,
    "histogram_to": 2.0,
    "positive_histogram": [1, 2],
    "negative_histogram": [3, 0],
}
SCORES = {"kind": "scores", "step": 0, "of": "inputs", "map_at_r": None, "recall_at": {"1": 0.5}, "queries": 45}
VALIDATION = {"kind": "validation", "step": 3, "map_at_r": 0.5, "recall_at_1": 1.0}
GOOD = [STEP, MEASURE, SCORES, VALIDATION]


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["kind"])
def test_a_row_comes_back_as_it_was(row: metrics_rows.Row) -> None:
    line = metrics_rows.to_line(row)
    assert line == metrics_rows.to_line(json.loads(json.dumps(row)))
    assert metrics_rows.from_line(line[:-1]) == row
    assert json.loads(line) == row | {"crc": json.loads(line)["crc"]}  # still valid JSON


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["kind"])
def test_rows_of_earlier_releases_have_no_checksum(row: metrics_rows.Row) -> None:
    assert metrics_rows.from_line(json.dumps(row).encode()) == row


def test_every_kind_that_a_training_writes_is_read(tmp_path: Path) -> None:
    from tests.pages.conftest import make_run

    run = make_run(tmp_path, "schedule.measure_every=2")
    lines = (run.path / "metrics.jsonl").read_bytes().splitlines()
    found, _ = run.metrics()
    assert len(found) == len(lines) > 8
    assert {row["kind"] for row in found} == {"step", "measure", "scores", "baseline", "validation", "train"}


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["kind"])
def test_no_flipped_bit_gives_another_row(row: metrics_rows.Row) -> None:
    line = metrics_rows.to_line(row)[:-1]
    survived = 0
    for place in range(8 * len(line)):
        flipped = bytearray(line)
        flipped[place // 8] ^= 1 << place % 8
        found = metrics_rows.from_line(bytes(flipped))
        survived += found is not None
        if found is not None:  # the flip hit the key of the checksum, so it counts as an ordinary field
            assert {key: found.get(key) for key in row} == row
    assert survived <= (0 if row in (STEP, MEASURE, VALIDATION) else 8 * 3)


HOSTILE = {
    "no step": {"kind": "step", "loss": 1.0},
    "no loss": {"kind": "step", "step": 41},
    "a text for a step": STEP | {"step": "41"},
    "a step of 2^63": STEP | {"step": 2**63},
    "a step below zero": STEP | {"step": -1},
    "a fraction of a step": STEP | {"step": 1.5},
    "true for a step": STEP | {"step": True},
    "a text for a loss": STEP | {"loss": "1"},
    "no kind": {"step": 1, "loss": 1.0},
    "a list for a kind": STEP | {"kind": ["step"]},
    "a huge number": STEP | {"loss": 10**200},
    "one histogram": {key: value for key, value in MEASURE.items() if key != "negative_histogram"},
    "histograms of two lengths": MEASURE | {"negative_histogram": [1]},
    "histograms up to nothing": MEASURE | {"histogram_to": 0.0},
    "histograms without an end": {key: value for key, value in MEASURE.items() if key != "histogram_to"},
    "a histogram below zero": MEASURE | {"positive_histogram": [-1, 0]},
    "an empty histogram": MEASURE | {"positive_histogram": [], "negative_histogram": []},
    "a text for a measure": MEASURE | {"spread": "wide"},
    "a score of nothing": {key: value for key, value in SCORES.items() if key != "of"},
    "scores without ranks": {key: value for key, value in SCORES.items() if key != "recall_at"},
    "a score above one": SCORES | {"map_at_r": 5.0},
    "a rank in words": SCORES | {"recall_at": {"one": 0.5}},
    "a score in a list": SCORES | {"recall_at": {"1": [0.5]}},
    "weights elsewhere": SCORES | {"weights": "../../etc/passwd"},
    "a validation of nothing": {"kind": "validation", "step": 1},
    "a fork of nothing": {"kind": "fork", "step": 1, "run": "x"},
    "brackets of a later kind": {"kind": "new", "step": 1, "deep": [[[[[1]]]]]},
    "a field without a name": STEP | {"": 1.0},
}


@in_one_case(what=HOSTILE)
def test_what_is_no_row_is_left_out_with_and_without_a_checksum(what: str) -> None:
    assert metrics_rows.from_line(metrics_rows.to_line(HOSTILE[what])[:-1]) is None
    assert metrics_rows.from_line(json.dumps(HOSTILE[what]).encode()) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind": "step", "step": 1, "loss": NaN}',
        b'{"kind": "step", "step": 1, "loss": Infinity}',
        b'{"kind": "step", "step": 1, "loss": 1e999}',
        b'{"kind": "step", "step": 1, "loss": ' + b"9" * 5000 + b"}",
        b'{"kind": "step", "step": 1, "loss": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"kind": "scores\\ud800", "step": 1}',
        b'{"kind": "new", "step": 1, "text": "' + b"x" * 2**20 + b'"}',
        b"\xff\xfe",
        b"[]",
    ],
    ids=["NaN", "Infinity", "1e999", "5000 digits", "100000 brackets", "surrogate", "megabyte", "bytes", "list"],
)
def test_what_python_would_take_for_json_is_left_out(line: bytes) -> None:
    assert metrics_rows.from_line(line) is None


def test_readers_survive_every_line_of_noise() -> None:
    """Curves and monitors accept every row that survives flipped bits in lines without checksums."""
    source = random.Random(12)
    history, taken = RunHistory(), []
    for _ in range(4000):
        line = bytearray(json.dumps(source.choice(GOOD)).encode())
        for _ in range(source.choice((1, 1, 2, 5))):
            line[source.randrange(len(line))] ^= 1 << source.randrange(8)
        if row := metrics_rows.from_line(bytes(line)):
            taken.append(row)
            history.take(row)
    assert len(taken) > 300
    watch(taken, RunSpec())
