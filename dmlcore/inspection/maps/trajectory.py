"""Map over training: one frame per kept checkpoint, with frames aligned so that points can be followed.

trajectories/<name of the settings>.<digest of the checkpoints>.npz holds steps (S,), points (S, n, 2) in the row order
of kept/STEP.npz, and facts as JSON: settings, method of alignment, and the quality of each frame.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dmlcore.inspection import snapshots
from dmlcore.inspection.maps import maps
from dmlcore.inspection.maps.quality import Quality, quality
from dmlcore.inspection.maps.settings import FEWEST_ITERATIONS, TITLES, Settings
from dmlcore.storage import arrays
from dmlcore.storage.arrays import EMBEDDINGS, FLOATS, INTEGERS, TEXT, ArraySpec, Unreadable
from dmlcore.storage.runs import Run, RunError
from dmlcore.typing import Floats, Ints, Singles

FOLDER = "trajectories"
TRAJECTORY = {
    "steps": ArraySpec(INTEGERS, ("S",)),
    "points": ArraySpec(FLOATS, ("S", "n", 2)),
    "facts": ArraySpec(TEXT, ()),
}
AGAIN = "Compute the map during training again"
JOINT = (
    "PCA: one pair of axes for all steps, from the mean of their covariances (each divided by its trace). Each step is "
    "centred on its own mean and shown in the units of the embeddings."
)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Map of the same samples at several training steps.

    Args:
        steps: Steps (S,), ascending.
        points: Points (S, n, 2) float32, in the row order of the embeddings of each snapshot.
        how: Description of how the frames were aligned.
        settings: Settings of the maps.
        quality: Quality of each frame; None for fewer than 3 points and for frames in which all embeddings are equal.
    """

    steps: Ints
    points: Singles
    how: str
    settings: Settings
    quality: tuple[Quality | None, ...]


def find(run: Run, settings: Settings) -> Path | None:
    """Return the path of the map over training for the current checkpoints, or None if it has not been computed."""
    known = snapshots.snapshots(run)
    path = path_of(run, settings, known) if known else None
    return path if path and path.is_file() else None


def path_of(run: Run, settings: Settings, known: list[snapshots.Snapshot]) -> Path:
    """Return the path of the map over training for the given snapshots.

    The path changes with the steps and the weights of the checkpoints.
    """
    digest = hashlib.sha256()
    for snapshot in known:
        with open(snapshot.checkpoint, "rb") as file:
            digest.update(b"%d %s " % (snapshot.step, file.read(64)))  # a checkpoint file starts with its SHA-256
    return run.path / FOLDER / f"{settings.name}.{digest.hexdigest()[:16]}.npz"


def read(path: Path) -> Trajectory:
    """Read a map over training.

    Raises:
        Unreadable: The file is damaged.
    """
    table = arrays.read(path, TRAJECTORY, remedy=AGAIN)
    try:
        facts = json.loads(str(table["facts"]))
        measured = tuple(Quality(**measured) if measured else None for measured in facts["quality"])
        return Trajectory(
            table["steps"],
            table["points"].astype(np.float32),
            str(facts["how"]),
            Settings.from_json(facts["settings"]),
            measured,
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable(f"{path.name} cannot be read ({error}). {AGAIN}.") from None


def make(run: Run, settings: Settings | None = None, tell: maps.Report = lambda done, words: None) -> Path:
    """Compute and store the map over all kept checkpoints, unless it exists and is readable; return its path.

    Checkpoints without embeddings are embedded first.

    Args:
        run: Run to map.
        settings: Settings of the maps; by default `Settings()` with the seed of the run.
        tell: Callback for progress.

    Raises:
        RunError: The run has fewer than two kept checkpoints, or its embeddings cannot be mapped.
        Unreadable: A file of embeddings is damaged.
        projection.Missing: The package of the method is not installed.
    """
    settings = settings or Settings(seed=run.spec.seed)
    known = snapshots.snapshots(run)
    if len(known) < 2:
        raise RunError(
            f"{run.id} has {'only one kept checkpoint' if known else 'no kept checkpoints'}, but a map during "
            "training needs two; train with schedule.keep_every, for example 50"
        )
    path = path_of(run, settings, known)
    # An unreadable file is computed again.
    if path.is_file():
        try:
            read(path)
        except Unreadable:
            path.unlink()
        else:
            return path
    if any(snapshot.embeddings is None for snapshot in known):
        tell(0.0, "embedding the test split with each kept checkpoint")
        snapshots.embed_all(run)
        known = snapshots.snapshots(run)
    try:
        points, measured, how = frames([_embeddings(snapshot) for snapshot in known], settings, tell)
    except ValueError as error:
        raise RunError(f"{run.id} has no {TITLES[settings.method]} map over training: {error}") from None
    path.parent.mkdir(exist_ok=True)
    facts = {
        "settings": settings.to_json(),
        "how": how,
        "quality": [quality.as_dict() if quality else None for quality in measured],
    }
    maps.keep(path, facts, points=points, steps=np.array([snapshot.step for snapshot in known]))
    # Delete outdated maps, which were computed from earlier sets of checkpoints.
    for old in path.parent.glob(f"{settings.name}.*.npz"):
        if old != path:
            old.unlink(missing_ok=True)
    return path


def frames(
    embeddings: list[Singles], settings: Settings, report: maps.Report | None = None
) -> tuple[Singles, list[Quality | None], str]:
    """Compute the frames of a map over training.

    Args:
        embeddings: S arrays (n, D), one per step.
        settings: Settings of the maps.
        report: Callback for progress.

    Returns:
        Points (S, n, 2), the quality of each frame, and a description of how the frames were aligned.

    Raises:
        ValueError: The arrays differ in shape, have values that are not finite, or are all collapsed.
    """
    shapes = {points.shape for points in embeddings}
    if len(shapes) != 1:
        raise ValueError(f"the snapshots must have one shape, got {', '.join(map(str, sorted(shapes)))}")
    collapsed = [bool((points == points[0]).all()) for points in embeddings]
    if settings.method == "pca":
        points, how = _project_jointly(embeddings), JOINT
    else:
        points, how = _align_frames(embeddings, collapsed, settings, report)
    measured = []
    for frame, plane, gone in zip(embeddings, points, collapsed, strict=True):
        if report:
            report(0.97, "measuring the quality")
        measured.append(None if gone else quality(frame, plane))
    return points, measured, how


def _project_jointly(embeddings: list[Singles]) -> Singles:
    dimensions = embeddings[0].shape[1]
    mean = np.zeros((dimensions, dimensions))
    for frame_points in embeddings:
        centred = _centred(frame_points)
        covariance = centred.T @ centred
        mean += covariance / (np.trace(covariance) or 1.0)
    axes = np.linalg.eigh(mean)[1][:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    points = np.zeros((len(embeddings), len(embeddings[0]), 2), np.float32)
    for frame, frame_points in enumerate(embeddings):
        points[frame, :, : axes.shape[1]] = _centred(frame_points) @ axes
    return points


def _align_frames(
    embeddings: list[Singles], collapsed: list[bool], settings: Settings, report: maps.Report | None
) -> tuple[Singles, str]:
    """Compute frames from last to first, each initialised with the frame that follows it and then aligned with it.

    Returns:
        Points (S, n, 2) and a description of how the frames were aligned.
    """
    count = len(embeddings)
    points = np.zeros((count, len(embeddings[0]), 2), np.float32)
    following = Settings(**{**settings.used, "iterations": max(FEWEST_ITERATIONS, settings.iterations // 2)})
    after: Singles | None = None
    spread = 0.0
    for number, frame in enumerate(reversed(range(count))):
        if collapsed[frame]:
            continue

        def tell(done: float, words: str, number: int = number) -> None:
            if report:
                report(0.97 * (number + done) / count, f"frame {number + 1} of {count}, {words}")

        plane = maps.draw(embeddings[frame], settings if after is None else following, start=after, report=tell)
        after = plane - plane.mean(axis=0) if after is None else align(plane, after)
        spread = spread or float(after.std())
        # Scale to the spread of the last frame: earlier frames were optimised for longer, which enlarges the map.
        points[frame] = after * (spread / after.std())
    if after is None:
        raise ValueError("the embeddings of every step are all equal (collapsed), so there is no map")
    how = (
        f"{TITLES[settings.method]}: the last step is mapped from PCA in {settings.iterations} iterations. Each "
        f"earlier step starts from the map of the next step and is optimised for {following.iterations} iterations"
        f"{' without exaggeration' if settings.method == 'tsne' else ''}, then rotated, mirrored and shifted onto that "
        "map (orthogonal Procrustes). All maps are scaled to the same spread, because their size has no meaning."
    )
    gone = sum(collapsed)
    return points, how + (f" Collapsed to one point: {gone} of {count} steps." if gone else "")


def align(plane: Singles, onto: Singles) -> Singles:
    """Return points (n, 2) rotated, mirrored and shifted, but not scaled, to lie as close as possible to `onto`."""
    from scipy.linalg import orthogonal_procrustes

    ours, theirs = _centred(plane), _centred(onto)
    return np.asarray(ours @ orthogonal_procrustes(ours, theirs)[0] + onto.mean(axis=0), dtype=np.float32)


def _centred(values: Singles) -> Floats:
    exact = values.astype(np.float64)
    centred: Floats = exact - exact.mean(axis=0)
    return centred


def _embeddings(snapshot: snapshots.Snapshot) -> Singles:
    assert snapshot.embeddings is not None
    remedy = "Remove this file and embed the checkpoint again"
    return arrays.read(snapshot.embeddings, EMBEDDINGS, "embeddings", remedy=remedy)["embeddings"]
