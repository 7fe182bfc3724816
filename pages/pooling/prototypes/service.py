"""WebSocket service of the Prototypes page: local features, their prototypes and the histogram of one image.

Notation of array shapes: N images, m prototypes, S shown classes, n local features of the chosen image. If
request["have"] equals the "key" of the response, only the arrays of the chosen image are sent, "own" first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
from starlette.routing import BaseRoute

from dmlcore.geometry import k_center
from dmlcore.geometry.cells import voronoi_cells
from dmlcore.geometry.hulls import Overlaps, hull, overlaps
from dmlcore.inspection.local import local_features
from dmlcore.inspection.local.local_features import MOST_PER_CLASS, LocalFeatures
from dmlcore.pooling.analysis.prototype_shares import PrototypeReading, read
from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.typing import Array, Floats
from pages.pooling.prototypes import story
from pages.pooling.prototypes.state import MOST, PrototypesView
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import identity, number, pack
from pages.shared.state.cache import cached
from pages.shared.words import sentences as words

MEASURES = ("hull_iou", "histogram_intersection", "active_jaccard", "hull_separation", "membership_rate")
COLUMNS = 8  # images per row of the sheet
# Only one request is computed at a time, because a network runs over hundreds of images and other pages need CPU cores.
TURNS = anyio.CapacityLimiter(1)


@cached(3)
def _source(key: tuple[str, str], _make: Callable[[], LocalFeatures]) -> LocalFeatures:
    return _make()


@cached(24)
def _result(key: tuple[str | int | float, ...], _make: Callable[[], Any]) -> Any:
    return _make()


def answer(request: dict[str, Any]) -> bytes:
    """Return the response for request["view"]: local features with cells and hulls, and data of the chosen image."""
    view = PrototypesView.of(request.get("view"))
    header: dict[str, Any] = {"id": identity(request)}
    try:
        reading = PrototypesReading(view)
    except (RuntimeError, ValueError, OSError) as error:  # can be raised by runs, checkpoints, data sets and networks
        return pack(header | {"error": words.plain(error), "query": view.link()}, {})
    header |= {"query": reading.link(), "view": reading.view.to_json(), "key": reading.key, "image": reading.image()}
    header |= {"verdict": reading.verdict(), "next": reading.onward()}
    arrays = reading.image_arrays()
    if request.get("have") != reading.key:
        header |= reading.header()
        arrays |= reading.arrays()
    return pack(header, arrays)


class PrototypesReading:
    """View of the local features, limited to the classes and images that its source has, with all results computed for
    it.
    """

    def __init__(self, view: PrototypesView) -> None:
        self.local, self.version = features(view.source)
        self.classes = np.unique(self.local.labels)
        count, most = len(self.classes), int(self.local.ranks.max()) + 1
        shown = tuple(dict.fromkeys(min(c, count - 1) for c in view.shown))
        rows = (self.local.labels == self.classes[min(view.picture[0], count - 1)]).sum()
        self.view = replace(
            view,
            per_class=min(view.per_class, most),
            weights="uniform" if self.local.weights is None else view.weights,
            shown=shown,
            picture=(min(view.picture[0], count - 1), min(view.picture[1], int(rows) - 1, view.per_class - 1)),
        )
        v = self.view
        self.key = replace(v, picture=(0, 0)).link() + f"@{self.version}"
        self.rows = np.flatnonzero(self.local.ranks < v.per_class)
        self.labels = self.local.labels[self.rows]
        base = (v.source, self.version, v.per_class)
        self.reading: PrototypeReading = _result((*base, v.prototypes, v.weights), lambda: self._read(base))
        self.tau = v.tau / v.prototypes
        self.overlaps: Overlaps = _result(
            (*base, v.prototypes, v.weights, v.tau),
            lambda: overlaps(
                self.reading.prototypes, self.reading.histograms, self.labels, self.reading.pooled, self.tau
            ),
        )
        at = np.flatnonzero((self.labels == self.classes[v.picture[0]]) & (self.local.ranks[self.rows] == v.picture[1]))
        self.at = int(at[0])  # row of the chosen image in `self.reading`

    def _read(self, base: tuple[str | int, ...]) -> PrototypeReading:
        x = self.local.features[self.rows]
        flat = x.reshape(-1, 2)
        # Greedy centres are nested: the first m of MOST centres equal the result for m centres.
        most = min(MOST, len(flat))
        centres = _result((*base, "centres"), lambda: k_center(flat, None, most))
        weights = (
            self.local.weights[self.rows] if self.view.weights == "pooling" and self.local.weights is not None else None
        )
        return read(x, flat[centres[: self.view.prototypes]], weights)

    def link(self) -> str:
        """Return the URL query string of this view, without the number of images per class if all images are used."""
        v = self.view
        return (v if v.per_class <= self.local.ranks.max() else replace(v, per_class=MOST_PER_CLASS)).link()

    # ---- the plane
    def header(self) -> dict[str, Any]:
        """Return the texts and numbers shown with the local features of all images."""
        r, local, o = self.reading, self.local, self.overlaps
        return {
            "classes": [local.class_names[c] for c in self.classes],
            "counts": [int((self.labels == c).sum()) for c in self.classes],
            "most": int(local.ranks.max()) + 1,
            "note": local.note,
            "dimension": local.dimension,
            "kept": local.kept,
            "grid": local.grid,
            "weighed": local.weights is not None,
            "tau": self.tau,
            "holds": int(r.holds.sum()),
            "total": len(r.holds),
            "mean": {k: float(getattr(r, k).mean()) for k in ("error", "mean_distance", "radius")},
            "overlaps": {k: number(o.mean(k)) for k in MEASURES},
            # membership_rate: fraction of the pooled vectors of class a inside the hull of class b; back: the reverse
            "pairs": [
                {"a": a, "b": b, "back": number(o.pairs["membership_rate"][b, a])}
                | {k: number(o.pairs[k][a, b]) for k in MEASURES}
                for i, a in enumerate(self.view.shown)
                for b in self.view.shown[i + 1 :]
            ],
            "box": self.box(),
            "cells": [len(c) for c in self.cells()],
            "hulls": [len(h) for h in self.hulls()],
            "window": local.window,
            "features": [int((self.labels == self.classes[c]).sum()) * r.features.shape[1] for c in self.view.shown],
            "sheet": f"api/prototypes/pictures.png?source={self.view.source}&v={self.version}",
        }

    def arrays(self) -> dict[str, Array]:
        """Return the arrays to draw: features, prototypes, cells, hulls and pooled vectors."""
        r, low, side = self.reading, np.array(self.box()[:2]), self.box()[2]
        cloud = [r.features[self.labels == self.classes[c]].reshape(-1, 2) for c in self.view.shown]
        points = np.concatenate([np.empty((0, 2)), *cloud])
        return {
            "prototypes": r.prototypes.astype(np.float32),
            "patches": np.stack([self.local.patch(int(self.rows[i]), int(j)) for i, j in r.patches]),
            "cell": np.concatenate([np.empty((0, 2)), *self.cells()]).astype(np.float32),
            "hull": np.concatenate([np.empty((0, 2)), *self.hulls()]).astype(np.float32),
            "cloud": np.rint(65535 * np.clip((points - low) / side, 0, 1)).astype(np.uint16),
            "pooled": r.pooled.astype(np.float32),
            "place": np.searchsorted(self.classes, self.labels).astype(np.uint8),
            "share": np.stack([r.histograms[self.labels == self.classes[c]].mean(0) for c in self.view.shown]).astype(
                np.float32
            ),
            "active": self.overlaps.active[list(self.view.shown)].astype(np.uint8),
        }

    def box(self) -> tuple[float, float, float]:
        """Return (left, bottom, side) of a square that contains all local features."""
        flat = self.reading.features.reshape(-1, 2)
        low, high = flat.min(0), flat.max(0)
        side = float((high - low).max()) * 1.08 or 1.0
        left, bottom = ((low + high - side) / 2).tolist()
        return left, bottom, side

    def cells(self) -> list[Floats]:
        """Return the corners of each prototype's Voronoi cell, clipped to the box."""
        left, bottom, side = self.box()
        corners = np.array([[left, bottom], [left + side, bottom], [left + side, bottom + side], [left, bottom + side]])
        v = self.view
        key = ("cells", v.source, self.version, v.per_class, v.prototypes)
        cells: list[Floats] = _result(key, lambda: voronoi_cells(self.reading.prototypes, corners))
        return cells

    def hulls(self) -> list[Floats]:
        """Return the corners of the convex hull of each shown class, spanned by the prototypes active in that class."""
        return [hull(self.reading.prototypes[self.overlaps.active[c]]) for c in self.view.shown]

    # ---- the image
    def image(self) -> dict[str, Any]:
        """Return the name, pooled vector and error bounds of the chosen image."""
        r, i = self.reading, self.at
        return {
            "index": int(self.local.indices[self.rows[i]]),
            "row": i,
            "name": self.local.class_names[self.labels[i]],
            "pooled": r.pooled[i].tolist(),
            "combination": r.combination[i].tolist(),
            "error": float(r.error[i]),
            "mean_distance": float(r.mean_distance[i]),
            "radius": float(r.radius[i]),
            "holds": bool(r.holds[i]),
            "used": int((r.histograms[i] > 0).sum()),
        }

    def verdict(self) -> str:
        """Return the sentences that compare the pooled vector of the chosen image with its histogram."""
        shared = number(self.overlaps.mean("histogram_intersection"))
        return story.verdict(self.reading, self.at, shared, self.view.weights == "uniform")

    def onward(self) -> str:
        """Return the URL query string of the Transport page with the chosen image as its map."""
        return story.onward(self.reading, self.at, self.labels, self.local.grid)

    def image_arrays(self) -> dict[str, Array]:
        """Return the arrays of the chosen image: features, weights, assigned prototypes, histogram and pixels."""
        r, i = self.reading, self.at
        return {
            "own": r.features[i].astype(np.float32),
            "weight": r.weights[i].astype(np.float32),
            "assigned": r.assignment[i].astype(np.uint8),
            "histogram": r.histograms[i].astype(np.float32),
            "pixels": self.local.images[self.rows[i]],
        }


def features(source: str) -> tuple[LocalFeatures, str]:
    """Return the local features of a source and their version; a run's version changes with further training."""
    if not source.startswith("run:"):
        made = {
            "digits3": lambda: local_features.digit_patches(3),
            "digits4": lambda: local_features.digit_patches(4),
            "cifar10": local_features.cifar10,
        }[source]
        return _source((source, "0"), made), "0"
    run = RunStore().open(source.removeprefix("run:"))
    try:
        version = f"{(run.path / LAST).stat().st_mtime_ns:x}"
    except FileNotFoundError:
        raise RunError(f"{run.id} has no checkpoint yet; let it train for a while") from None
    return _source((source, version), lambda: local_features.of_run(run)), version


ROUTES: list[BaseRoute] = [socket_route("/api/prototypes", answer, heavy=lambda _: True, limiter=TURNS)]
