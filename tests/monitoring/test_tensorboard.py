"""TensorBoard event files, read back with protobuf and verified by their checksums."""

import json
import struct
import threading

import pytest
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import masked_crc32c

from dmlcore.monitoring import tensorboard
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunError, RunStore

ROWS = [
    {
        "kind": "scores",
        "of": "untrained",
        "step": 0,
        "map_at_r": 0.25,
        "recall_at": {"1": 0.5, "8": 0.75},
        "nmi": None,
        "queries": 45,
    },
    {"kind": "step", "step": 1, "loss": 0.5, "active": 1.0},
    {
        "kind": "measure",
        "step": 1,
        "violating": 0.125,
        "histogram_to": 2.0,
        "positive_histogram": [0, 3, 1, 0],
        "negative_histogram": [0, 0, 0, 0],
    },
    {"kind": "validation", "step": 2, "map_at_r": 0.375, "part": "test"},
    {"kind": "scores", "of": "trained", "step": 2, "map_at_r": 0.625, "recall_at": {}, "queries": 45, "weights": "ab"},
]


@pytest.fixture
def run(tmp_path):
    run = RunStore(tmp_path / "runs").create(RunSpec(name="A name", ks=(1, 8)))
    append(run, ROWS)
    return run


def append(run, rows):
    with open(run.path / "metrics.jsonl", "a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def finish(run, step, seconds):
    with run.lock():
        run.mark_running()
        run.update(state="done", step=step, seconds=seconds)


def files(folder):
    return sorted(folder.iterdir())


def read(folder):
    """Return every event of the only file in a folder; asserts both checksums of each record."""
    (path,) = files(folder)
    text, found = path.read_bytes(), []
    while text:
        (length,), (check,) = struct.unpack("<Q", text[:8]), struct.unpack("<I", text[8:12])
        content, (last,) = text[12 : 12 + length], struct.unpack("<I", text[12 + length : 16 + length])
        assert check == masked_crc32c(text[:8])
        assert last == masked_crc32c(content)
        found.append(Event.FromString(content))
        text = text[16 + length :]
    return found


def scalars(found):
    return {(v.tag, e.step): v.simple_value for e in found for v in e.summary.value if v.HasField("simple_value")}


def test_every_number_is_a_scalar_under_its_kind(run):
    found = read(tensorboard.write(run))
    assert found[0].file_version == "brain.Event:2"
    assert scalars(found) == {
        ("scores/untrained/map_at_r", 0): 0.25,
        ("scores/untrained/recall_at/1", 0): 0.5,
        ("scores/untrained/recall_at/8", 0): 0.75,
        ("scores/untrained/queries", 0): 45,
        ("step/loss", 1): 0.5,
        ("step/active", 1): 1.0,
        ("measure/violating", 1): 0.125,
        ("validation/map_at_r", 2): 0.375,
        ("scores/trained/map_at_r", 2): 0.625,
        ("scores/trained/queries", 2): 45,
    }


def test_the_spec_is_there_as_text(run):
    text = next(v for e in read(tensorboard.write(run)) for v in e.summary.value if v.tag == "spec/text_summary")
    lines = text.tensor.string_val[0].decode().splitlines()
    assert RunSpec.from_toml("\n".join(line.removeprefix("    ") for line in lines)) == run.spec


def test_histograms_keep_counts_and_edges_and_an_empty_one_is_left_out(run):
    found = [v for e in read(tensorboard.write(run)) for v in e.summary.value if v.HasField("histo")]
    assert [v.tag for v in found] == ["measure/positive_histogram"]
    histogram = found[0].histo
    assert list(histogram.bucket) == [0, 3, 1, 0]
    assert list(histogram.bucket_limit) == [0.5, 1.0, 1.5, 2.0]
    assert (histogram.min, histogram.max, histogram.num) == (0.5, 1.5, 4)
    assert (histogram.sum, histogram.sum_squares) == (3 * 0.75 + 1.25, 3 * 0.75**2 + 1.25**2)


def test_the_same_rows_give_the_same_file_which_is_not_touched(run):
    (path,) = files(tensorboard.write(run))
    before = path.stat()
    (again,) = files(tensorboard.write(run))
    after = again.stat()
    assert (again, after.st_ino, after.st_mtime_ns) == (path, before.st_ino, before.st_mtime_ns)


def test_new_rows_are_appended_to_the_open_file_even_after_a_cut(run):
    (path,) = files(tensorboard.write(run))
    inode, size = path.stat().st_ino, path.stat().st_size
    with open(path, "r+b") as file:  # an update that was killed half-way
        file.truncate(size - 5)
    append(run, [{"kind": "step", "step": 3, "loss": 0.125}])
    found = scalars(read(tensorboard.write(run)))
    assert found["step/loss", 3] == 0.125
    assert len(found) == 11
    assert path.stat().st_ino == inode


def test_rows_that_a_resume_took_back_are_gone(run):
    tensorboard.write(run)
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS[:2]))
    append(run, [{"kind": "step", "step": 2, "loss": 0.75}])
    found = scalars(read(tensorboard.write(run)))
    assert found["step/loss", 2] == 0.75
    assert ("validation/map_at_r", 2) not in found


def test_wall_times_of_a_finished_run_follow_its_pace(run):
    created = run.state().created
    assert {event.wall_time for event in read(tensorboard.write(run))} == {created}
    finish(run, step=2, seconds=30.0)
    walls = {event.step: event.wall_time for event in read(tensorboard.write(run))}
    assert walls == {0: created, 1: created + 15, 2: created + 30}


def test_events_of_several_runs_go_into_folders_of_their_own(run, tmp_path):
    folder = tensorboard.write(run, tmp_path / "board")
    assert folder == tmp_path / "board" / run.id
    assert not (run.path / "events").exists()
    assert scalars(read(folder))


def test_following_ends_with_the_run_and_misses_nothing(run):
    looks = []

    def stop():
        looks.append(len(read(run.path / "events")))
        if len(looks) == 1:
            append(run, [{"kind": "step", "step": 9, "loss": 1.0}])
        return False

    lock = run.lock()
    with lock:
        thread = threading.Thread(target=tensorboard.follow, args=([run],), kwargs={"every": 0.05, "stop": stop})
        thread.start()
        while len(looks) < 3:
            assert thread.is_alive()
    thread.join(60)
    assert not thread.is_alive()
    assert scalars(read(run.path / "events"))["step/loss", 9] == 1.0


def test_a_damaged_run_is_named(run):
    (run.path / "state.json").write_text("{")
    with pytest.raises(RunError, match=r"state\.json cannot be read"):
        tensorboard.write(run)
