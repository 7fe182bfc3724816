"""View of a triplet in the plane: all numbers, lines and arrays that a figure of its force field shows, in one call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import SupportsFloat

import numpy as np
import torch

from dmlcore.geometry.boundary import Levels, Lines, streamlets
from dmlcore.geometry.field_table import snapshot
from dmlcore.geometry.forces import EdgeEnergy, Probe
from dmlcore.geometry.hardness import Hardness, hardness
from dmlcore.geometry.margins import RANKING_MARGIN, margin_for_ellipse
from dmlcore.geometry.scales import percentile, round_top
from dmlcore.typing import Array, Bools, Floats

SAMPLES = 96  # samples per force law
CUT = 160  # samples per cut
STILL = 1e-12  # forces with a smaller norm are treated as rounding errors

Place = tuple[float, float]
Window = tuple[float, float, float]  # centre x, centre y, half width


@dataclass(frozen=True, kw_only=True)
class PlaneScene:
    """A triplet in the plane, its loss with hyper-parameters, and the layers that `view` computes."""

    loss: EdgeEnergy  # for example from `losses.create`
    points: tuple[Place, Place, Place]  # anchor, positive and negative
    probe: Probe  # point that is moved over the window, and whose force is the field
    window: Window
    grid: int  # nodes along each side of the window, at the centres of equal cells
    shade: str = "energy"  # values to be coloured: "energy" (clamped), "raw" (before the clamp), "force" or "none"
    lines: str = "none"  # equipotentials of the "raw" or the "clamped" energy, or "none"
    region: bool = False  # polygons around the active region
    streams: bool = False  # streamlines of the force
    discs: bool = False  # discs of the ranking loss and the ellipse around them
    mining: bool = False  # regions of easy, semi-hard and hard triplets
    cut: Sequence[float] | None = None  # end points (x0, y0, x1, y1) of a segment along which the energy is sampled
    scale: float | None = None  # value of the strongest colour, > 0; None to choose it
    reference: float | None = None  # force with an arrow of half length, > 0; None to choose it
    refit: bool = False  # replace a given `scale` or `reference` that is not within a factor of about 1.6 of the chosen


@dataclass(frozen=True, kw_only=True, eq=False)
class PlaneView:
    """The field of a triplet in the plane; rows of the arrays (n, n) are y, from the bottom. A layer not shown is None.

    `laws` (3, SAMPLES) holds the strengths of pull along ap and push along an and pn, at edge lengths from 0 (excluded)
    to `reach`.
    """

    raw: float  # energy of the triplet before the clamp
    energy: float  # energy of the triplet after the clamp
    hit: bool  # True if the loss is active at the triplet
    forces: Floats  # (3, 2), forces on anchor, positive and negative
    residuals: Floats  # (3, 2), components of the forces that do not act along the edges
    edges: Mapping[str, float]  # lengths of the edges ap, an and pn
    strengths: Mapping[str, float]  # pull along ap and push along an and pn
    force: Floats  # (2, n, n), force on the probe
    active: Bools  # (n, n), True where the loss has a gradient
    places: Floats  # (n * n, 2), positions of the nodes
    flat: bool  # True if the loss is active somewhere, but exerts no force
    laws: Floats
    reach: float
    shade: Floats | None  # (n, n)
    scale: float
    reference: float
    outer: Lines  # boundary of the active region where the loss vanishes
    inner: Lines  # boundary of the active region where the loss reaches its upper clamp
    rings: Lines | None  # polygons around the active region, to be filled with the even-odd rule
    contours: Sequence[tuple[float, Lines]] | None  # (energy, its equipotentials)
    streams: Floats | None  # (S, K, 2) streamlines in fractions of the window
    cut: Floats | None  # (2, CUT), energy before and after the clamp along the cut
    discs: Mapping[str, object] | None  # radius of both ranking discs, semi-axes of the ellipse around them
    mining: Hardness | None

    def nearest_active(self, probe: Place) -> list[float] | None:
        """Return a position near `probe` and well inside the region where the loss is active; None if it is empty."""
        places = self.places[self.active.ravel()]
        if not len(places):
            return None
        nearest = places[np.linalg.norm(places - np.array(probe), axis=1).argmin()]
        inner = nearest + 0.25 * (places.mean(0) - nearest)
        return [round(float(v), 3) for v in places[np.linalg.norm(places - inner, axis=1).argmin()]]


def view(scene: PlaneScene) -> PlaneView:
    """Compute the field of a triplet in the plane and the layers that the scene asks for, in one pass through the loss.

    Raises:
        ValueError: If the probe is unknown.

    Example:
        >>> from dmlcore import geometry, losses
        >>> points = (0.0, 0.0), (0.5, 0.0), (0.35, 0.75)
        >>> loss = losses.create("ranking", m=0.5)
        >>> scene = geometry.PlaneScene(loss=loss, points=points, probe="negative", window=(0.0, 0.0, 1.5), grid=41)
        >>> shown = geometry.view(scene)
        >>> shown.force.shape, round(shown.raw, 3), shown.scale
        ((2, 41, 41), 0.172, 0.97)
    """
    loss, n, m2 = scene.loss, scene.grid, scene.loss.m2
    x, y, places = _nodes(scene.window, n)
    at = places if scene.cut is None else np.concatenate((places, _segment(scene.cut)))
    points = np.array(scene.points)
    a, p, s = map(torch.from_numpy, points)
    reach = _reach(points)
    field, triplet, laws = snapshot(loss, points, probe=scene.probe, at=at, reach=reach * _SHARES)
    raw, energy, active = (x.numpy()[: n * n].reshape(n, n) for x in (field.raw, field.energy, field.active))
    force = field.force.numpy().T[:, : n * n].reshape(2, n, n)
    strength = np.sqrt(force[0] ** 2 + force[1] ** 2)
    shade = {"raw": raw, "force": strength}.get(scene.shade, energy)
    scale, reference = scene.scale, scene.reference
    if not scale or scene.refit:
        top = percentile(np.abs(shade)[active], 97)
        scale = _kept(scale, round_top(top, m2 if scene.shade == "energy" else math.inf))
    if not reference or scene.refit:
        reference = _kept(reference, round_top(percentile(strength[active], 50)))
    levels = Levels(x, y, raw)
    cx, cy, half = scene.window
    return PlaneView(
        raw=triplet.raw.item(),
        energy=triplet.energy.item(),
        hit=bool(triplet.active),
        forces=np.stack(triplet.forces) + 0.0,  # + 0.0 turns -0 into 0
        residuals=np.stack(triplet.residuals) + 0.0,
        edges=_by_edge(triplet.sides.lengths),
        strengths=_by_edge(triplet.strengths),
        force=force,
        active=active,
        places=places,
        flat=bool(active.any() and strength.max() < STILL),
        laws=laws,
        reach=reach,
        shade=None if scene.shade == "none" else shade,
        scale=scale,
        reference=reference,
        outer=levels.lines(0.0),
        inner=levels.lines(m2),
        rings=levels.patches(0.0, m2, (cx - half, cx + half, cy - half, cy + half)) if scene.region else None,
        contours=None
        if scene.lines == "none"
        else [(level, levels.lines(level)) for level in _levels(raw, scale, m2, clamped=scene.lines == "clamped")],
        streams=streamlets(np.moveaxis(force, 0, -1)) if scene.streams else None,
        cut=None if scene.cut is None else np.stack((field.raw.numpy()[n * n :], field.energy.numpy()[n * n :])),
        discs=_discs(float(triplet.sides.lengths[0])) if scene.discs else None,
        mining=hardness(loss, a, p, s, scene.probe) if scene.mining else None,
    )


_SHARES = np.arange(1, SAMPLES + 1) / SAMPLES


def _kept(given: float | None, fits: float) -> float:
    return given if given and 0.6 < given / fits < 1.6 else fits


def _by_edge(values: Iterable[SupportsFloat]) -> dict[str, float]:
    return {edge: float(value) + 0.0 for edge, value in zip(("ap", "an", "pn"), values, strict=True)}


@lru_cache(maxsize=64)
def _nodes(window: Window, n: int) -> tuple[Array, Array, Array]:
    """Return the coordinates x (n,) and y (n,) of the grid, and the positions (n * n, 2) of its nodes, row by row."""
    x0, y0, half = window
    step = 2 * half / n
    x, y = ((np.arange(n) + 0.5) * step + (c - half) for c in (x0, y0))
    return x, y, np.stack(np.meshgrid(x, y)).reshape(2, -1).T  # contiguous columns


def _segment(ends: Sequence[float]) -> Floats:
    start, end = np.reshape(ends, (2, 2))
    line: Floats = start + np.linspace(0, 1, CUT)[:, None] * (end - start)
    return line


def _reach(points: Floats) -> float:
    """Return the largest distance on the axis of the force laws: a power of two above the longest edge."""
    longest = max(math.dist(points[i], points[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    return float(2.0 ** math.ceil(math.log2(max(1.25 * longest, 1.0))))


def _levels(raw: Floats, scale: float, m2: float, *, clamped: bool) -> Iterator[float]:
    """Yield the energies of the equipotentials: multiples of a round step, except 0; if `clamped`, between 0 and m2."""
    power = 10.0 ** math.floor(math.log10(scale / 7))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= scale / 7 * (1 - 1e-9))
    finite = raw[np.isfinite(raw)]
    if not finite.size:
        return
    low, high = float(finite.min()), float(finite.max())
    if clamped:
        low, high = max(low, step / 2), min(high, m2 - step / 4)
    first, last = math.ceil(max(low, -12 * step) / step), math.floor(min(high, 12 * step) / step)
    yield from (k * step for k in range(first, last + 1) if k)


def _discs(d: float) -> dict[str, object] | None:
    """Return the radius of the ranking discs and the semi-axes of the ellipse around them; None if d = d_ap is 0.

    Reference:
        Karaman 2021, App. B.
    """
    if d <= 0:
        return None
    # for rho = 1/2 and s = 0, margin_for_ellipse returns the semi-major axis minus d
    major = margin_for_ellipse(d, RANKING_MARGIN, 0, 0.5) + d
    return {"radius": d + RANKING_MARGIN, "axes": [major, math.sqrt(major**2 - d**2 / 4)]}
