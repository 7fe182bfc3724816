from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dmlcore.inspection import neighbours
from dmlcore.inspection.comparison import Incomparable
from dmlcore.inspection.differences import difference, find_label_errors, turnover
from dmlcore.inspection.neighbours import TestNeighbours


def made(path: Path, embeddings: np.ndarray, labels: np.ndarray, indices: np.ndarray | None = None) -> TestNeighbours:
    indices = np.arange(100, 100 + len(labels)) if indices is None else indices
    np.savez(path, embeddings=embeddings.astype(np.float32), labels=labels, indices=indices)
    return neighbours.read(path)


def clusters(seed: int, classes: int = 6, each: int = 15, noise: float = 0.15) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), each)
    centres = np.random.default_rng(0).normal(size=(classes, 8))
    return centres[labels] + noise * random.normal(size=(len(labels), 8)), labels


def test_flips_and_changes_by_hand(tmp_path: Path) -> None:
    """Return points on a line, classes 0 0 | 1 1 | 2: sample 1 moves to class 1, sample 4 is alone in its class."""
    labels = np.array([0, 0, 1, 1, 2])
    before = made(tmp_path / "a.npz", np.array([[0.0], [1], [5], [5.5], [20]]), labels)
    after = made(tmp_path / "b.npz", np.array([[0.0], [4.9], [5], [5.5], [20]]), labels)
    found = difference(before, after)
    assert found.indices.tolist() == [100, 101, 102, 103]
    assert found.lost.tolist() == [False, True, True, False]
    assert not found.gained.any()
    assert found.change.tolist() == [0, -1, -1, 0]
    assert found.queries("lost").tolist() == [1, 2]
    assert found.queries("gained").tolist() == found.queries("better").tolist() == []
    assert difference(after, before).queries("gained").tolist() == [1, 2]
    assert found.change.mean() == pytest.approx(after.map_at_r - before.map_at_r)
    # The two nearest of 101 change from 100 and 102 to 102 and 103; those of 102 only change their order.
    assert found.neighbour_overlap(2).tolist() == [1.0, 0.5, 1.0, 1.0]
    assert found.neighbour_overlap(1).tolist() == [1.0, 0.0, 0.0, 1.0]


def test_rows_in_another_order_are_the_same_queries(tmp_path: Path) -> None:
    points, labels = clusters(1, noise=1.0)
    other, _ = clusters(2, noise=1.0)
    order = np.random.default_rng(3).permutation(len(labels))
    before = made(tmp_path / "a.npz", points, labels)
    straight = difference(before, made(tmp_path / "b.npz", other, labels))
    mixed = difference(before, made(tmp_path / "c.npz", other[order], labels[order], 100 + order))
    assert np.array_equal(straight.indices, mixed.indices)
    assert np.allclose(straight.change, mixed.change)
    assert np.array_equal(straight.lost, mixed.lost)
    assert np.allclose(straight.neighbour_overlap(5), mixed.neighbour_overlap(5))
    assert straight.lost.any()
    for kind in ("worse", "lost"):
        assert (np.diff(straight.change[straight.queries(kind)]) >= 0).all()
    for kind in ("better", "gained"):
        assert (np.diff(straight.change[straight.queries(kind)]) <= 0).all()


def test_other_samples_are_refused(tmp_path: Path) -> None:
    points, labels = clusters(1)
    whole = made(tmp_path / "a.npz", points, labels)
    part = made(tmp_path / "b.npz", points[:60], labels[:60])
    with pytest.raises(Incomparable, match="tested on 60 samples and run 1 on 90"):
        difference(whole, part)


def test_turnover_counts_every_flip(tmp_path: Path) -> None:
    views = [made(tmp_path / f"{seed}.npz", *clusters(seed, noise=1.0)) for seed in range(4)]
    found = turnover(views)
    pairs = [difference(a, b) for a, b in pairwise(views)]
    assert found.gained.tolist() == [int(pair.gained.sum()) for pair in pairs]
    assert found.lost.tolist() == [int(pair.lost.sum()) for pair in pairs]
    assert found.right.tolist() == pytest.approx([view.recall_at_1 for view in views])
    assert np.allclose(np.diff(found.right) * len(found.forgotten), found.gained - found.lost)
    assert found.forgotten.sum() == found.lost.sum() > 0


def test_planted_label_errors_are_found_and_nothing_else(tmp_path: Path) -> None:
    true = clusters(0)[1]
    wrong = true.copy()
    planted = {104: 3, 133: 0, 171: 1}
    for index, label in planted.items():
        wrong[index - 100] = label
    views = [made(tmp_path / f"{seed}.npz", clusters(seed)[0], wrong) for seed in range(3)]
    found = find_label_errors(views)
    assert dict(zip(found.indices.tolist(), found.label.tolist(), strict=True)) == {
        index: int(true[index - 100]) for index in planted
    }
    assert (found.views == 3).all()
    assert not len(find_label_errors([made(tmp_path / "true.npz", *clusters(7))]).indices)


def test_one_confused_view_among_many_is_not_enough(tmp_path: Path) -> None:
    points, labels = clusters(0)
    moved = points.copy()
    moved[3] = points[50]
    views = [made(tmp_path / f"{n}.npz", moved if n == 0 else points, labels) for n in range(3)]
    assert find_label_errors(views).indices.tolist() == []
    assert find_label_errors(views[:2]).indices.tolist() == [103]
    with pytest.raises(ValueError, match="views"):
        find_label_errors([])
