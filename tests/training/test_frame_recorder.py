"""Frames of a training run: samples, orientation, resume, bounds, and no effect on the training."""

import errno
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlcore.data import load
from dmlcore.projection import pca
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import ScheduleSpec
from dmlcore.storage import validation_frames
from dmlcore.storage.runs import Run, RunStore
from dmlcore.storage.validation_frames import MAX_POINTS, Frame
from dmlcore.training import frame_recorder, loop, starts
from dmlcore.training.build import load_data
from dmlcore.training.frame_recorder import FrameRecorder, align, choose_queries, choose_samples
from tests.training.resumed import same_to_the_bit, trained

SPEC = RunSpec().with_overrides(
    ["schedule.steps=25", "schedule.validate_every=10", "schedule.checkpoint_every=7", "model.hidden=[16]"]
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(RunStore(tmp_path_factory.mktemp("whole")), SPEC)


def frames(run: Run) -> dict[int, Frame]:
    return {step: validation_frames.read(path) for step, path in validation_frames.paths(run.path).items()}


def contents(run: Run) -> dict[int, bytes]:
    return {step: path.read_bytes() for step, path in validation_frames.paths(run.path).items()}


def recorder(folder: Path, steps: int = 1000, every: int = 10) -> FrameRecorder:
    """Return a recorder for the validation split of the digits."""
    data = load("digits", split="samples", validation="samples")
    rows = data.splits["validation"]
    return FrameRecorder(
        folder, ScheduleSpec(steps=steps, validate_every=every), data, rows, np.zeros(len(rows), bool), 0
    )


def embedded(recorder: FrameRecorder, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(len(recorder._rows), 4)).astype(np.float32)


def test_each_validation_of_a_run_and_its_last_step_has_a_frame_of_the_same_samples(whole: Run) -> None:
    found = frames(whole)
    assert list(found) == [0, 10, 20, 25]
    data = load_data(whole.spec)
    first = found[0]
    for frame in found.values():
        for name in ("indices", "labels", "queries"):
            np.testing.assert_array_equal(getattr(frame, name), getattr(first, name))
        assert np.isin(frame.indices, data.splits["validation"]).all()
        np.testing.assert_array_equal(frame.labels, data.labels[frame.indices])
        np.testing.assert_array_equal(frame.neighbour_labels, data.labels[frame.neighbours])
        assert not (frame.neighbours == frame.indices[frame.queries][:, None]).any(), "a query found itself"
    assert len(np.unique(first.labels[first.queries])) == 6
    assert any((frame.neighbours != first.neighbours).any() for frame in found.values())


def test_a_run_without_frames_has_the_same_rows_and_weights(whole: Run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(starts, "_record_frames", lambda *arguments: None)
    without = trained(RunStore(tmp_path), SPEC)
    assert frames(without) == {}
    same_to_the_bit(whole, without)


def test_a_resumed_run_has_the_same_frames(whole: Run, tmp_path) -> None:
    stopped = trained(RunStore(tmp_path), SPEC, stops=(3, 12, 21))
    assert contents(stopped) == contents(whole)


def test_frames_after_the_checkpoint_are_removed_before_a_resume(tmp_path) -> None:
    run = RunStore(tmp_path).create(SPEC)
    seen = []
    with run.lock():
        asked = iter([False] * 11 + [True])
        loop.train(run, stop=lambda: next(asked))
        validation_frames.write(run.path, 20, frames(run)[10])  # as if killed after step 20 and before its checkpoint
        run.update(state="queued")
        loop.train(run, stop=lambda: seen.append(list(frames(run))) or True)
    assert seen == [[0, 10]]


def test_neighbours_come_from_all_samples_nearest_first(tmp_path) -> None:
    record = recorder(tmp_path)
    embeddings = embedded(record)
    record(10, embeddings)
    frame = validation_frames.read(validation_frames.paths(tmp_path)[10])
    for row, near in zip(frame.queries, frame.neighbours, strict=True):
        own = int(np.flatnonzero(record._rows == frame.indices[row])[0])
        distances = np.linalg.norm(embeddings - embeddings[own], axis=1)
        np.testing.assert_array_equal(near, record._rows[np.argsort(distances)[1:6]])


def test_queries_search_only_a_gallery_if_there_is_one(tmp_path) -> None:
    data = load("digits", split="samples", validation="samples")
    rows = data.splits["test"]
    is_gallery = np.arange(len(rows)) >= 100
    record = FrameRecorder(tmp_path, ScheduleSpec(steps=10, validate_every=10), data, rows, is_gallery, 0)
    record(10, embedded(record))
    frame = validation_frames.read(validation_frames.paths(tmp_path)[10])
    assert np.isin(frame.indices, rows[~is_gallery]).all()
    assert np.isin(frame.neighbours, rows[is_gallery]).all()


def test_a_frame_is_the_plane_of_pca_aligned_with_the_previous_one(tmp_path) -> None:
    record = recorder(tmp_path)
    first = embedded(record) * [9, 6, 1, 1]
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    record(10, first.astype(np.float32))
    record(20, (first @ turn + 5).astype(np.float32))  # the same embeddings, turned and moved in their space
    one, two = (validation_frames.read(path) for path in validation_frames.paths(tmp_path).values())
    np.testing.assert_allclose(two.points, one.points, atol=1e-4)
    np.testing.assert_allclose(align(one.points, pca(first[record._shown])), pca(first[record._shown]), atol=1e-4)
    record(30, (first / 2).astype(np.float32))
    smaller = validation_frames.read(validation_frames.paths(tmp_path)[30])
    assert smaller.reach == one.reach == pytest.approx(np.abs(one.points).max())
    np.testing.assert_allclose(smaller.points, one.points / 2, atol=1e-4)


@pytest.mark.parametrize("embeddings", [np.zeros((1, 1)), np.ones((1, 3))], ids=["one dimension", "collapsed"])
def test_degenerate_embeddings_are_points_at_the_centre(embeddings, tmp_path) -> None:
    record = recorder(tmp_path)
    record(10, np.repeat(embeddings, len(record._rows), axis=0).astype(np.float32))
    record(20, embedded(record))
    one, two = (validation_frames.read(path) for path in validation_frames.paths(tmp_path).values())
    assert not one.points.any()
    assert two.points.std() > 0.5


def test_a_long_run_has_a_bounded_number_of_small_files(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(frame_recorder, "MAX_FRAMES", 7)
    record = recorder(tmp_path, steps=1003, every=10)
    for step in [*range(0, 1003, 10), 1003]:
        record(step, embedded(record, step))
    steps = list(validation_frames.paths(tmp_path))
    assert len(steps) <= 9
    assert steps[0] == 0
    assert steps[-1] == 1003
    assert all(path.stat().st_size < 16_000 for path in validation_frames.paths(tmp_path).values())


def test_a_full_disk_and_values_that_are_not_finite_do_not_end_the_training(tmp_path, monkeypatch, caplog) -> None:
    record = recorder(tmp_path)
    record(10, embedded(record) * np.nan)

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(validation_frames, "write", full)
    with caplog.at_level(logging.WARNING):
        record(20, embedded(record))
    assert validation_frames.paths(tmp_path) == {}
    assert "the map of step 20 was not written: [Errno 28] No space left" in caplog.text


def test_a_damaged_previous_frame_only_costs_its_orientation(tmp_path, caplog) -> None:
    record = recorder(tmp_path)
    record(10, embedded(record))
    validation_frames.paths(tmp_path)[10].write_bytes(b"PK")
    record(20, embedded(record))
    assert validation_frames.read(validation_frames.paths(tmp_path)[20]).points.any()
    assert "the map of step 20 may be rotated" in caplog.text


@pytest.mark.parametrize(("classes", "each"), [(3, 1000), (40, 30), (500, 20), (7000, 2)])
def test_samples_are_spread_evenly_over_a_bounded_number_of_classes(classes: int, each: int) -> None:
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(classes), each))
    rows = choose_samples(labels, 0)
    present, counts = np.unique(labels[rows], return_counts=True)
    assert len(np.unique(rows)) == len(rows) == min(MAX_POINTS, each * len(present))
    assert len(present) == min(classes, frame_recorder.MAX_CLASSES)
    assert counts.max() - counts.min() <= 1
    assert (np.diff(labels[rows]) >= 0).all()
    np.testing.assert_array_equal(rows, choose_samples(labels, 0))
    assert (rows != choose_samples(labels, 1)).any()


@pytest.mark.parametrize(
    ("labels", "queries"),
    [
        ([0, 0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6], 6),  # class 1 has no second sample
        ([0, 0, 0, 0, 1, 1, 1, 1], 6),
        ([0, 1, 2], 3),
        ([4], 1),
    ],
)
def test_queries_are_spread_over_the_classes(labels: list[int], queries: int) -> None:
    rows = choose_queries(np.array(labels))
    chosen = np.array(labels)[rows]
    assert len(np.unique(rows)) == queries
    assert set(chosen) == set(labels) - {1} if queries == 6 and len(labels) > 8 else set(chosen) == set(labels)


def test_a_single_sample_has_a_frame_without_neighbours(tmp_path) -> None:
    data = load("digits", split="samples", validation="samples")
    data = replace(data, splits=dict(data.splits) | {"validation": data.splits["validation"][:1]})
    rows = data.splits["validation"]
    FrameRecorder(tmp_path, ScheduleSpec(steps=5, validate_every=5), data, rows, np.zeros(1, bool), 0)(
        5, np.ones((1, 3), np.float32)
    )
    frame = validation_frames.read(validation_frames.paths(tmp_path)[5])
    assert frame.neighbours.shape == (1, 0)
