"""Maps of the embeddings of a run, computed once per evaluation and settings and stored next to the embeddings.

embeddings/<digest of the weights>.<name of the settings>.map.npz holds points (n, 2) in the row order of
embeddings/<digest>.npz, the perplexity that was used (NaN if the method has none), and facts as JSON: settings and
quality.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dmlcore import projection
from dmlcore.inspection.maps import placing
from dmlcore.inspection.maps.quality import Quality, quality
from dmlcore.inspection.maps.settings import METHODS, TITLES, Method, Settings
from dmlcore.storage import arrays, atomic_files
from dmlcore.storage.arrays import EMBEDDINGS, FLOATS, TEXT, ArraySpec, Unreadable
from dmlcore.storage.runs import Run, RunError
from dmlcore.typing import Array, Singles

__all__ = [
    "METHODS", "TITLES", "Map", "Method", "Quality", "Settings",
    "draw", "find", "list_settings", "make", "place", "read",
]  # fmt: skip

SUFFIX = ".map.npz"
MAP = {
    "points": ArraySpec(FLOATS, ("n", 2)),
    "perplexity": ArraySpec(FLOATS, (), nan=True),
    "facts": ArraySpec(TEXT, ()),
}
AGAIN = "Compute the map again"

Report = Callable[[float, str], object]  # (fraction done in 0..1, message)


@dataclass(frozen=True, eq=False)
class Map:
    """Map of embeddings.

    Args:
        points: Points (n, 2) float32, in the row order of `source`.
        settings: Settings of the map.
        quality: Quality of the map; None for fewer than 3 points.
        source: File of the embeddings.
        perplexity: Perplexity used, lowered if there are few points; None if the method has no perplexity.
        drawn: Size of the sample that was mapped if there are very many points, otherwise None; the other points were
            placed among the sample (`placing`).
    """

    points: Singles
    settings: Settings
    quality: Quality | None
    source: Path
    perplexity: float | None
    drawn: int | None = None

    @property
    def words(self) -> str:
        """Description such as "t-SNE, perplexity 30, 400 iterations, seed 0", with the perplexity that was used."""
        words = self.settings.words
        if self.perplexity is not None:
            words = words.replace(f"perplexity {self.settings.perplexity:g}", f"perplexity {self.perplexity:.4g}")
        if self.drawn is None:
            return words
        how = (
            "on its axes" if self.settings.method == "pca" else f"by their {placing.NEIGHBOURS} nearest mapped samples"
        )
        others = len(self.points) - self.drawn
        return f"{words} ({self.drawn:,} samples balanced over the classes were mapped; {others:,} were placed {how})"


def path_of(source: Path, settings: Settings) -> Path:
    """Return the path of the map of an embeddings file with the given settings."""
    return source.with_name(f"{source.stem}.{settings.name}{SUFFIX}")


def find(run: Run, settings: Settings, source: Path | None = None) -> Path | None:
    """Return the map file of the newest embeddings, or of those in `source`; None if it has not been computed."""
    source = source or run.embeddings()
    path = path_of(source, settings) if source else None
    return path if path and path.is_file() else None


def list_settings(run: Run) -> list[Settings]:
    """Return the settings of all readable maps of the newest embeddings, newest map first."""
    source = run.embeddings()
    paths = list(source.parent.glob(f"{source.stem}.*{SUFFIX}")) if source else []
    layouts = []
    for path in atomic_files.newest_first(paths):
        try:
            settings = _facts(path)[1]
        except Unreadable:
            continue
        if source and path == path_of(source, settings):
            layouts.append(settings)
    return layouts


def read(path: Path) -> Map:
    """Read a map.

    Raises:
        Unreadable: The file is damaged.
    """
    facts, settings = _facts(path)
    table = arrays.read(path, MAP, "points", "perplexity", remedy=AGAIN)
    source = path.with_name(path.name.partition(".")[0] + ".npz")
    recorded = facts.get("quality")
    try:
        measured = Quality(**recorded) if recorded else None
        used, drawn = float(table["perplexity"]), facts.get("drawn")
        points = table["points"].astype(np.float32, copy=False)
        perplexity = None if np.isnan(used) else used
        return Map(points, settings, measured, source, perplexity, None if drawn is None else int(drawn))
    except (TypeError, ValueError) as error:
        raise Unreadable(f"{path.name} cannot be read ({error}). {AGAIN}.") from None


def make(run: Run, settings: Settings | None = None, tell: Report = lambda done, words: None) -> Path:
    """Compute and store the map of the newest embeddings, unless it exists and is readable; return its path.

    Args:
        run: Run to map.
        settings: Settings of the map; by default `Settings()` with the seed of the run.
        tell: Callback for progress.

    Raises:
        RunError: The run has not been evaluated, or its embeddings cannot be mapped (too few, or collapsed).
        Unreadable: The embeddings file is damaged.
        projection.Missing: The package of the method is not installed.
    """
    settings = settings or Settings(seed=run.spec.seed)
    source = run.embeddings()
    if source is None:
        raise RunError(f"{run.id} has no embeddings yet; evaluate it first")
    path = path_of(source, settings)
    if path.is_file() and _is_readable(path):
        os.utime(path)  # makes it the newest map
        return path
    table = arrays.read(source, EMBEDDINGS, "embeddings", "labels", remedy="Evaluate the run again")
    embeddings, sample = table["embeddings"], None
    if len(embeddings) > placing.MOST_MAPPED:
        sample = placing.draw_balanced(table["labels"], placing.SAMPLE, settings.seed)
    drawn = embeddings if sample is None else embeddings[sample]
    share = 0.95 if sample is None else 0.5
    try:
        points = draw(drawn, settings, report=lambda done, words: tell(share * done, words))
    except ValueError as error:
        raise RunError(f"{run.id} has no {TITLES[settings.method]} map: {error}") from None
    perplexity = used_perplexity(settings, len(points))
    facts: dict[str, Any] = {"settings": settings.to_json()}
    if sample is None:
        tell(0.95, "measuring the quality")
        measured = quality(embeddings, points)
    else:
        words = f"placing {len(embeddings) - len(sample):,} points among {len(sample):,}"
        linear = settings.method == "pca"
        points = placing.place_all(
            embeddings, sample, points, linear=linear, tell=lambda done: tell(share + 0.45 * done, words)
        )
        tell(0.95, "measuring the quality")
        measured = placing.quality_of_many(embeddings, points, sample, settings.seed)
        facts |= {"drawn": len(sample)}
    facts |= {"quality": measured.as_dict() if measured else None}
    keep(path, facts, points=points, perplexity=np.array(np.nan if perplexity is None else perplexity))
    return path


def draw(
    embeddings: ArrayLike,
    settings: Settings,
    *,
    start: ArrayLike | None = None,
    report: Report | None = None,
) -> Singles:
    """Compute the map (n, 2) float32 of embeddings.

    Args:
        embeddings: Array (n, D).
        settings: Settings of the map.
        start: Initial map (n, 2); by default the initialisation of the method.
        report: Callback for progress.

    Raises:
        ValueError: The embeddings cannot be mapped (too few, or collapsed).
        projection.Missing: The package of the method is not installed.
    """
    title = TITLES[settings.method]

    def progress(done: float) -> None:
        if report:
            report(done, f"{title}: iteration {round(done * settings.iterations)} of {settings.iterations}")

    if report:
        report(0.0, f"{title}: finding neighbours")
    if settings.method == "pca":
        return projection.pca(embeddings)
    common: dict[str, Any] = {"iterations": settings.iterations, "seed": settings.seed, "device": settings.device}
    common |= {"start": start, "progress": progress}
    if settings.method == "tsne":
        return projection.tsne(embeddings, perplexity=settings.perplexity, **common)
    return projection.umap(embeddings, neighbours=settings.neighbours, min_dist=settings.min_dist, **common)


def place(layout: Map, embeddings: ArrayLike) -> Singles:
    """Compute positions for new embeddings on an existing map, with the method of that map.

    PCA projects exactly. t-SNE moves the new points along its gradient while the map stays fixed
    (`projection.place_tsne`). UMAP, and t-SNE if only a sample of the points was mapped, use a weighted mean of the
    neighbours (`projection.place_umap`).

    Args:
        layout: Map to place the embeddings on.
        embeddings: Array (m, D).

    Returns:
        Positions (m, 2) float32.

    Raises:
        ValueError: The embeddings have another dimension than those of the map.
        Unreadable: The embeddings of the map are missing or damaged.
    """
    table = arrays.read(layout.source, EMBEDDINGS, "embeddings", "labels", remedy="Evaluate the run again")
    known, points, settings = table["embeddings"], layout.points, layout.settings
    if len(known) != len(points):
        raise Unreadable(f"the map has {len(points)} points, its embeddings {len(known)}. {AGAIN}.")
    if layout.drawn is not None:  # place the new points like the points outside the sample (see `placing`)
        sample = placing.draw_balanced(table["labels"], layout.drawn, settings.seed)
        return placing.place_among(
            known[sample], points[sample], np.asarray(embeddings), linear=settings.method == "pca"
        )
    if settings.method == "pca":
        return projection.place_pca(known, embeddings)
    if settings.method == "tsne":
        return projection.place_tsne(known, points, embeddings, perplexity=settings.perplexity)
    return projection.place_umap(known, points, embeddings, neighbours=settings.neighbours)


def used_perplexity(settings: Settings, count: int) -> float | None:
    """Return the perplexity for a map of `count` points, lowered if these are few; None unless it is a t-SNE map."""
    return projection.fitting_perplexity(count, settings.perplexity) if settings.method == "tsne" else None


def keep(path: Path, facts: dict[str, Any], **content: Array) -> None:
    """Write arrays and JSON-serialisable facts to an .npz file atomically."""
    text = np.array(json.dumps(facts, sort_keys=True, allow_nan=False))
    atomic_files.replace(path, lambda file: arrays.save(file, facts=text, **content))


def _facts(path: Path) -> tuple[dict[str, Any], Settings]:
    text = arrays.read(path, MAP, "facts", remedy=AGAIN)["facts"]
    try:
        facts = json.loads(str(text))
        return facts, Settings.from_json(facts["settings"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable(f"{path.name} cannot be read ({error}). {AGAIN}.") from None


def _is_readable(path: Path) -> bool:
    try:
        read(path)
    except Unreadable:
        return False
    return True
