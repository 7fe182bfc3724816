"""Maps of what a run has learned: made once for each evaluation and settings, kept beside the embeddings.

embeddings/<digest of the weights>.<name of the settings>.map.npz holds points (n, 2), row by row those of
embeddings/<digest>.npz, the perplexity that was used (NaN without), and facts as JSON: settings, quality.
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
    "draw", "find", "made", "make", "place", "read",
]  # fmt: skip

SUFFIX = ".map.npz"
MAP = {
    "points": ArraySpec(FLOATS, ("n", 2)),
    "perplexity": ArraySpec(FLOATS, (), nan=True),
    "facts": ArraySpec(TEXT, ()),
}
AGAIN = "Compute the map again"

Report = Callable[[float, str], object]  # share done 0..1, in words


@dataclass(frozen=True, eq=False)
class Map:
    """points (n, 2) float32: row i is row i of the embeddings in the file `source`; quality is None below 4 points."""

    points: Singles
    settings: Settings
    quality: Quality | None
    source: Path
    perplexity: float | None  # as used: lowered where there are few points; None where the method has none
    drawn: int | None = None  # of very many: how many were mapped, the others placed among them (`placing`)

    @property
    def words(self) -> str:
        """For example "t-SNE, perplexity 30, 400 iterations, seed 0", with the perplexity that was used."""
        words = self.settings.words
        if self.perplexity is not None:
            words = words.replace(f"perplexity {self.settings.perplexity:g}", f"perplexity {self.perplexity:.4g}")
        if self.drawn is None:
            return words
        how = "by its axes" if self.settings.method == "pca" else f"by their {placing.NEIGHBOURS} nearest of these"
        others = len(self.points) - self.drawn
        return f"{words} (of {self.drawn:,} samples balanced over the classes; the other {others:,} placed {how})"


def path_of(source: Path, settings: Settings) -> Path:
    """Where the map of an embeddings file is kept."""
    return source.with_name(f"{source.stem}.{settings.name}{SUFFIX}")


def find(run: Run, settings: Settings, source: Path | None = None) -> Path | None:
    """The map of the newest embeddings (or of those in `source`) with these settings, or None if it is not made yet."""
    source = source or run.embeddings()
    path = path_of(source, settings) if source else None
    return path if path and path.is_file() else None


def made(run: Run) -> list[Settings]:
    """Settings of all readable maps of the newest embeddings, the newest first."""
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
    """The map in a file; raises Unreadable."""
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
    """Make and keep the map of the newest embeddings, unless it is there and readable; return its file.

    settings: default as `Settings()` with the seed of the run. Raises RunError before an evaluation and for embeddings
    that have no map (too few, collapsed), Unreadable, projection.Missing.
    """
    settings = settings or Settings(seed=run.spec.seed)
    source = run.embeddings()
    if source is None:
        raise RunError(f"{run.id} has no embeddings yet; evaluate it first")
    path = path_of(source, settings)
    if path.is_file() and _whole(path):
        os.utime(path)  # the newest
        return path
    table = arrays.read(source, EMBEDDINGS, "embeddings", "labels", remedy="Evaluate the run again")
    embeddings, sample = table["embeddings"], None
    if len(embeddings) > placing.MOST_MAPPED:
        sample = placing.balanced(table["labels"], placing.SAMPLE, settings.seed)
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
        points = placing.spread(
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
    """The map (n, 2) float32 of embeddings (n, D); `start` (n, 2): a map to begin with. ValueError, Missing."""
    title = TITLES[settings.method]

    def progress(done: float) -> None:
        if report:
            report(done, f"{title}: iteration {round(done * settings.iterations)} of {settings.iterations}")

    if report:
        report(0.0, f"{title}: finding neighbours")
    if settings.method == "pca":
        return projection.pca(embeddings)
    if settings.method == "tsne":
        return projection.tsne(
            embeddings,
            perplexity=settings.perplexity,
            iterations=settings.iterations,
            seed=settings.seed,
            start=start,
            progress=progress,
        )
    return projection.umap(
        embeddings,
        neighbours=settings.neighbours,
        min_dist=settings.min_dist,
        iterations=settings.iterations,
        seed=settings.seed,
        start=start,
        progress=progress,
    )


def place(layout: Map, embeddings: ArrayLike) -> Singles:
    """Where new embeddings (m, D) belong on a map, (m, 2) float32, by the method of the map.

    PCA: exactly. t-SNE: moved by its gradient among the points of the map, which stand still (`projection.place_tsne`).
    UMAP, and every map of very many points: the mean of the neighbours, weighted as UMAP weighs them
    (`projection.place_umap`). Raises ValueError for
    embeddings of another dimension, Unreadable where those of the map are gone.
    """
    table = arrays.read(layout.source, EMBEDDINGS, "embeddings", "labels", remedy="Evaluate the run again")
    known, points, settings = table["embeddings"], layout.points, layout.settings
    if len(known) != len(points):
        raise Unreadable(f"the map has {len(points)} points, its embeddings {len(known)}. {AGAIN}.")
    if layout.drawn is not None:  # as all others were placed on it
        sample = placing.balanced(table["labels"], layout.drawn, settings.seed)
        return placing.among(known[sample], points[sample], np.asarray(embeddings), linear=settings.method == "pca")
    if settings.method == "pca":
        return projection.place_pca(known, embeddings)
    if settings.method == "tsne":
        return projection.place_tsne(known, points, embeddings, perplexity=settings.perplexity)
    return projection.place_umap(known, points, embeddings, neighbours=settings.neighbours)


def used_perplexity(settings: Settings, count: int) -> float | None:
    """The perplexity that so many points allow; None for a method without."""
    return projection.fitting_perplexity(count, settings.perplexity) if settings.method == "tsne" else None


def keep(path: Path, facts: dict[str, Any], **content: Array) -> None:
    """Write arrays and facts (plain data) atomically."""
    text = np.array(json.dumps(facts, sort_keys=True, allow_nan=False))
    atomic_files.replace(path, lambda file: arrays.save(file, facts=text, **content))


def _facts(path: Path) -> tuple[dict[str, Any], Settings]:
    text = arrays.read(path, MAP, "facts", remedy=AGAIN)["facts"]
    try:
        facts = json.loads(str(text))
        return facts, Settings.from_json(facts["settings"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable(f"{path.name} cannot be read ({error}). {AGAIN}.") from None


def _whole(path: Path) -> bool:
    try:
        read(path)
    except Unreadable:
        return False
    return True
