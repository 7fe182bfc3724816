"""Recordings of lessons: all frames are present, and measurements on them follow their definition."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dmlcore.lessons.facts import FACTS
from dmlcore.lessons.recordings import (
    EnsembleShown,
    NeighboursShown,
    ProjectionFrame,
    ProjectionsShown,
    ensemble,
    exchange_frames,
    projections,
)
from dmlcore.lessons.stages import STAGES
from dmlcore.losses.ensembles import initial_weights
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import loop
from docs import make_recordings


def test_how_far_apart_proxies_lie_and_what_they_cover_are_means_over_the_classes() -> None:
    frame = ProjectionFrame(
        step=0,
        projection=1,
        points=np.array([[0.0, 0.0], [0.3, 0.4], [1.0, 0.0], [-1.0, 0.0]]),
        labels=np.array([0, 0, 1, 1]),
        proxies=np.array([[[0.0, 0.0], [0.0, 0.1]], [[1.0, 0.0], [0.0, 0.0]]]),
        map_at_r=0.5,
        title="",
    )
    assert frame.apart == pytest.approx((0.1 + 1.0) / 2)
    assert frame.covering == pytest.approx((np.hypot(0.3, 0.3) + 1.0) / 2)


def test_where_a_projection_ends_only_the_proxies_move_and_they_cover_better() -> None:
    frames = projections()
    ends = [number for number, frame in enumerate(frames) if frame.title.endswith("ends")]
    assert len(ends) == 4
    for before, after in ((frames[number], frames[number + 1]) for number in ends):
        assert (before.step, before.projection + 1) == (after.step, after.projection)
        assert np.array_equal(before.points, after.points)
        assert after.covering < before.covering
        assert after.apart > before.apart
    for frame in frames:
        assert max(np.linalg.norm(places, axis=-1).max() for places in (frame.points, frame.proxies)) < 1.002
        assert frame.proxies.shape == (len(np.unique(frame.labels)), 4, 2)


def test_the_recorded_ensemble_begins_as_its_source_and_keeps_a_floor() -> None:
    frames = ensemble()
    assert [frame.step for frame in frames] == list(range(1, len(frames) + 1))
    members = ("classifier", "triplet", "binomial", "proxy_nca")
    assert frames[0].weights.tolist() == initial_weights("source", members)
    assert all(frame.relative.tolist() == [1.0] * 4 for frame in frames[:1])
    assert min(frame.weights.min() for frame in frames) >= 1 / 16 - 1e-4
    assert all(abs(frame.weights.sum() - 1) < 0.05 for frame in frames)


def test_facts_of_recorded_runs_name_the_step_of_the_training() -> None:
    apart = FACTS["proxies apart"].measure(ProjectionsShown(21))
    assert apart.words.startswith("At step 500 the two farthest proxies of a class lie 0.349 apart")
    largest = FACTS["largest weight"].measure(EnsembleShown(0))
    assert (largest.value, "0.38 (Proxy-NCA)" in largest.words) == ("Proxy-NCA", True)


def test_an_ensemble_is_recorded_from_the_rows_of_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    spec = RunSpec().with_overrides(
        [
            *("loss.name=wel", "loss.learning_rate=0.05", "model.hidden=[8]", "model.embedding_dim=4", "device=cpu"),
            *("batch.classes=4", "batch.samples=4", "schedule.steps=3", "schedule.validate_every=3"),
        ]
    )
    run = RunStore().create(spec)
    with run.lock():
        loop.train(run)
    head, *rows = make_recordings.ensemble(run.id)
    logged = [row for row in run.metrics()[0] if row["kind"] == "step"]
    assert head == {"names": list(ensemble()[0].names)}
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert rows[2]["weights"][2] == round(logged[2]["weight_binomial"], 4)
    assert rows[2]["losses"][3] == pytest.approx(logged[2]["loss_proxy_nca"], rel=1e-3)


def test_neighbours_are_exchanged_one_by_one_and_only_the_query_moves() -> None:
    frames = exchange_frames()
    assert [frame.exchanged for frame in frames] == list(range(frames[0].neighbours + 1))
    assert all(frame.points is frames[0].points for frame in frames)
    assert frames[0].moved == 0
    assert all(later.moved > frame.moved for frame, later in pairwise(frames))
    assert (frames[0].nearest, frames[0].label) == (0, 0)
    assert frames[-1].nearest != 0
    classes = [FACTS["nearest class"].measure(NeighboursShown(n)).value for n in range(len(frames))]
    assert classes == ["its own"] * 4 + ["another"] * 5
    moved = FACTS["moved"].measure(NeighboursShown(3))
    assert moved.value == pytest.approx(float(np.hypot(*(frames[3].query - frames[0].query))))
    drawn = STAGES["neighbours"].draw(NeighboursShown(3))
    assert any("3 of 8 neighbours exchanged" in text.get_text() for text in drawn.texts)
