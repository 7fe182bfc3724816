"""The map during training: aligned frames, one file per set of checkpoints, and a report of collapsed embeddings."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dmlcore.inspection.maps import trajectory
from dmlcore.inspection.maps.maps import Settings
from dmlcore.inspection.neighbours import Unreadable
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunError, RunStore

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(4), 15)
NOISE = RNG.normal(size=(60, 8)) / 3
STEPS = [(1 - t) * NOISE + t * np.eye(8)[LABELS] + 0.05 * NOISE for t in (0, 0.4, 0.8, 1)]
FRAMES = [step.astype(np.float32) for step in STEPS]
QUICK = Settings(iterations=200)


def keep(run: Run, step: int, embeddings: np.ndarray) -> None:
    folder = run.path / "kept"
    folder.mkdir(exist_ok=True)
    (folder / f"{step:08}.ckpt").write_bytes(hashlib.sha256(embeddings.tobytes()).hexdigest().encode() + b"\n...")
    np.savez(
        folder / f"{step:08}.npz",
        embeddings=embeddings,
        labels=LABELS[: len(embeddings)],
        indices=np.arange(len(embeddings)),
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = RunStore(tmp_path).create(RunSpec())
    for step, embeddings in zip((0, 50, 100, 150), FRAMES, strict=True):
        keep(made, step, embeddings)
    return made


def moved(points: np.ndarray) -> float:
    """Return the median movement of a point between frames, divided by the spread of the points."""
    return float(np.median(np.linalg.norm(np.diff(points, axis=0), axis=2)) / points.std())


def test_it_is_kept_and_found_until_there_is_another_checkpoint(run):
    assert trajectory.find(run, QUICK) is None
    path = trajectory.make(run, QUICK)
    before = path.read_bytes()
    assert trajectory.find(run, QUICK) == trajectory.make(run, QUICK) == path
    assert path.read_bytes() == before
    found = trajectory.read(path)
    assert found.steps.tolist() == [0, 50, 100, 150]
    assert found.points.shape == (4, 60, 2)
    assert found.settings == QUICK
    assert all(q.trustworthiness > 0.75 for q in found.quality)
    assert "Procrustes" in found.how
    keep(run, 200, FRAMES[-1] * 1.01)
    assert trajectory.find(run, QUICK) is None
    newer = trajectory.make(run, QUICK)
    assert len(trajectory.read(newer).steps) == 5
    assert not path.exists(), "unreachable files must be deleted"
    newer.write_bytes(b"damaged")
    with pytest.raises(Unreadable, match="Compute the map during training again"):
        trajectory.read(newer)
    assert len(trajectory.read(trajectory.make(run, QUICK)).steps) == 5


def test_points_are_tied_from_frame_to_frame():
    tied, quality, _ = trajectory.frames(FRAMES, QUICK)
    np.testing.assert_array_equal(tied, trajectory.frames(FRAMES, QUICK)[0])
    alone = np.stack([trajectory.maps.draw(frame, QUICK) for frame in FRAMES])
    assert moved(tied) < 0.6 * moved(alone)
    np.testing.assert_allclose(tied.std(axis=(1, 2)), tied[-1].std(), rtol=1e-4)
    own = [trajectory.quality(frame, plane) for frame, plane in zip(FRAMES, alone, strict=True)]
    for mine, theirs in zip(quality, own, strict=True):
        assert mine.trustworthiness > theirs.trustworthiness - 0.03, "alignment costs little"
    for first, second in pairwise(tied):
        np.testing.assert_allclose(trajectory.align(first, second), first, atol=1e-3 * np.ptp(first))


def test_turning_keeps_all_distances_on_the_plane():
    plane = FRAMES[0][:, :2]
    angle = np.array([[np.cos(2), -np.sin(2)], [np.sin(2), np.cos(2)]], np.float32)
    mirrored = (plane * [1, -1]).astype(np.float32) @ angle + 5
    np.testing.assert_allclose(trajectory.align(mirrored, plane), plane, atol=1e-5)
    larger = trajectory.align(mirrored * 3, plane)
    np.testing.assert_allclose(larger.std(axis=0), 3 * plane.std(axis=0), rtol=1e-4)


def test_pca_has_one_basis_for_all_steps():
    points, _, how = trajectory.frames(FRAMES, Settings("pca"))
    assert "one pair of axes" in how
    joint = np.concatenate([frame - frame.mean(axis=0) for frame in FRAMES])
    basis, *_ = np.linalg.lstsq(joint, points.reshape(-1, 2), rcond=None)
    np.testing.assert_allclose(joint @ basis, points.reshape(-1, 2), atol=1e-4)
    np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-4)


def test_a_collapsed_step_is_one_place_and_the_others_stay_tied():
    collapsed = [FRAMES[0], np.full_like(FRAMES[0], 0.5), *FRAMES[2:]]
    points, quality, how = trajectory.frames(collapsed, QUICK)
    assert not points[1].any()
    assert quality[1] is None
    assert all(quality[i] for i in (0, 2, 3))
    assert "Collapsed to one point: 1 of 4 steps" in how
    with pytest.raises(ValueError, match="every step are all equal"):
        trajectory.frames([collapsed[1]] * 2, QUICK)


def test_what_has_no_map_over_training_says_why(run):
    keep(run, 200, FRAMES[0][:40])
    with pytest.raises(RunError, match="must have one shape"):
        trajectory.make(run, QUICK)
    for path in sorted((run.path / "kept").glob("*.ckpt"))[1:]:
        path.unlink()
    with pytest.raises(RunError, match=r"only one kept checkpoint.*schedule\.keep_every"):
        trajectory.make(run, QUICK)
