"""The effect of one step on the ranks of a query, compared with the metrics and with plain autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.inspection.failure.one_step import RetrievalFailure, failures, neighbours
from dmlcore.inspection.neighbours import TestNeighbours, read
from dmlcore.metrics import nearest, retrieval

CLASSES = 5


def learned(tmp_path, *, unit: bool = True, gallery: bool = False, seed: int = 0) -> TestNeighbours:
    generator = np.random.default_rng(seed)
    labels = np.arange(60) % CLASSES
    x = generator.normal(size=(CLASSES, 64))[labels] + 2.2 * generator.normal(size=(60, 64))
    x = x / np.linalg.norm(x, axis=1, keepdims=True) if unit else 0.3 * x
    more = {"is_gallery": np.arange(60) >= 25} if gallery else {}
    np.savez(tmp_path / "a.npz", embeddings=x.astype(np.float32), labels=labels, indices=np.arange(100, 160), **more)
    return read(tmp_path / "a.npz")


def failure(found: TestNeighbours, *, on_sphere: bool = True) -> RetrievalFailure:
    query = int(failures(found)[0])
    right, wrong = neighbours(found, query, right=True)[-1], neighbours(found, query, right=False)[0]
    return RetrievalFailure(found, query, int(right), int(wrong), on_sphere=on_sphere)


def moved_by_autograd(case: RetrievalFailure, loss, rate: float) -> np.ndarray:
    """Return the gradients by z, where the network returns z/|z| if the run normalises, for plain gradient descent."""
    leaves = [torch.from_numpy(x).requires_grad_() for x in case.points]
    on = (lambda z: z / z.norm()) if case.on_sphere else (lambda z: z)
    loss.clamped(*(on(z) for z in leaves)).backward()
    with torch.no_grad():
        ends = [z if z.grad is None else z - rate * z.grad for z in leaves]
        return torch.stack([on(z) if case.on_sphere else z for z in ends]).numpy()


def by_the_metrics(found: TestNeighbours, case: RetrievalFailure, points: np.ndarray) -> tuple[int, int, float]:
    """Compute the ranks and AP@R of the query after three rows are replaced, by the library's own search and scores."""
    x = found.embeddings.astype(np.float64)
    x[[case.query, case.right, case.wrong]] = points
    rows = np.flatnonzero(found.is_gallery) if found.is_gallery.any() else np.delete(np.arange(len(x)), case.query)
    _, order = nearest(x[[case.query]], x[rows], len(rows))
    place = {int(row): 1 + i for i, row in enumerate(rows[order[0]])}
    scores = retrieval(
        x[[case.query]], found.labels[[case.query]], gallery=x[rows], gallery_labels=found.labels[rows], ks=(1,)
    )
    return place[case.right], place[case.wrong], float(scores.per_query_average_precision[0])


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("name", losses.names())
def test_a_step_moves_as_autograd_does_and_ranks_are_those_of_the_metrics(tmp_path, name, unit):
    found = learned(tmp_path, unit=unit)
    case = failure(found, on_sphere=unit)
    # a core radius as large as the distances, or the decaying pull moves the points too little to change a rank
    loss = losses.create(name, **({"delta": 6.0} if name == "potential" else {}))
    changed = False
    for rate in (0.0, 0.05, 0.8):
        (step,) = case.steps([loss], rate)
        ends = moved_by_autograd(case, loss, rate)
        assert step.moved == pytest.approx(np.linalg.norm(ends - case.points, axis=1), abs=1e-7)
        expected = by_the_metrics(found, case, ends)
        assert (step.after.right, step.after.wrong) == expected[:2]
        assert step.after.average_precision == pytest.approx(expected[2])
        changed |= step.after != case.before
        if rate == 0:
            assert step.after == case.before
    assert changed == step.forces.active


def test_before_is_what_the_run_scored(tmp_path):
    for gallery in (False, True):
        found = learned(tmp_path, gallery=gallery)
        case = failure(found)
        assert case.before.average_precision == pytest.approx(found.average_precision[case.query])
        assert case.before.wrong == 1
        assert case.before.right == by_the_metrics(found, case, case.points)[0]
        assert found.neighbours[case.query, 0] == case.wrong


def test_steps_of_one_length_move_the_farthest_point_by_it(tmp_path):
    case = failure(learned(tmp_path, unit=False), on_sphere=False)
    for step in case.steps([losses.create("ranking"), losses.create("facenet")], 1.0, length=0.03):
        assert step.moved.max() == pytest.approx(0.03)


def test_points_may_be_moved_in_their_plane_first(tmp_path):
    found = learned(tmp_path)
    case, loss = failure(found), losses.create("lifted")
    at = case.triplet.points + np.array([[0, 0], [0.1, 0], [0.4, 0.3]])
    start = case.moved_to(at)
    assert case.moved_to(case.triplet.points) is case.triplet
    points = at @ case.triplet.basis + case.triplet.height * case.triplet.normal
    assert case.at(start) == pytest.approx(points)
    (here,) = case.ranks_at(case.at(start)[None])
    assert (here.right, here.wrong) == by_the_metrics(found, case, points)[:2]
    (step,) = case.steps([loss], 0.2, start=start)
    lengths = np.linalg.norm(points, axis=1)
    assert np.linalg.norm(step.ends, axis=1) == pytest.approx(lengths)
    assert step.forces.raw == pytest.approx(float(loss.raw(*(torch.from_numpy(x) for x in points))))


def test_ties_go_to_the_lower_row(tmp_path):
    x = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [2, 0]], np.float32)
    np.savez(tmp_path / "t.npz", embeddings=x, labels=np.array([0, 1, 0, 1, 0]), indices=np.arange(5))
    found = read(tmp_path / "t.npz")
    case = RetrievalFailure(found, 0, 2, 3, on_sphere=False)
    assert (case.before.right, case.before.wrong) == (2, 3)
    assert case.before.average_precision == pytest.approx(found.average_precision[0])
    assert neighbours(found, 0, right=False).tolist() == [1, 3]


def test_failures_come_worst_first_and_without_any_all_queries_do(tmp_path):
    found = learned(tmp_path)
    rows = failures(found)
    assert set(rows) == set(np.flatnonzero(found.failures))
    assert (np.diff(found.average_precision[rows]) >= 0).all()
    x = np.eye(3, dtype=np.float32)[[0, 0, 1, 1, 2]]
    np.savez(tmp_path / "p.npz", embeddings=x, labels=np.array([0, 0, 1, 1, 2]), indices=np.arange(5))
    assert set(failures(read(tmp_path / "p.npz"))) == {0, 1, 2, 3}


def test_what_is_not_unit_is_not_on_the_sphere(tmp_path):
    assert not failure(learned(tmp_path, unit=False), on_sphere=True).on_sphere


def test_a_triplet_that_does_not_fit_is_named(tmp_path):
    found = learned(tmp_path, gallery=True)
    for (query, right, wrong), words in {
        (30, 35, 36): "query is a gallery sample",
        (0, 5, 36): "right is not among",
        (0, 36, 37): "right must be of the class",
        (0, 35, 40): "wrong must be of another class",
    }.items():
        with pytest.raises(ValueError, match=words):
            RetrievalFailure(found, query, right, wrong, on_sphere=True)
    case = failure(found)
    with pytest.raises(ValueError, match="rate must be"):
        case.steps([losses.create("ranking")], -1.0)
