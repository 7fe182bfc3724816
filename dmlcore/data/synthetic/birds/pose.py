"""Shape of a bird in one pose: a curved body with a head and a tail, which have their own coordinate systems."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dmlcore.data.synthetic.birds.species import PARTS, Colour, Species
from dmlcore.typing import Floats

SAMPLES = 28  # number of points at which the spine is sampled

Places = Sequence[tuple[float, float]] | Floats


class Pose:
    """Shape of a bird in one pose, in body lengths and facing right; `place` sets its position on a canvas."""

    def __init__(self, species: Species, random: np.random.Generator) -> None:
        self.species, family = species, species.family
        # Spine: a spline from the head to the tail, with a body radius at each of its points. The y axis points down.
        turn = math.radians(family.posture + random.normal(0, 9))
        self.body = np.array([math.cos(turn), -math.sin(turn)])
        lift = math.radians(family.neck_angle + random.normal(0, 12))
        breast = 0.36 * self.body
        neck = family.neck * random.uniform(0.85, 1.15) * np.array([math.cos(lift), -math.sin(lift)])
        sag, depth = np.array([0.0, 0.05]), family.depth * random.uniform(0.94, 1.08)
        self.head_at = breast + neck + 0.75 * depth * np.array([0.25, -1.0])
        spine = np.array(
            [self.head_at, breast + 0.55 * neck + 0.2 * sag, breast, sag, -0.30 * self.body, -0.52 * self.body]
        )
        thin = min(family.head * 0.72, depth)
        radii = np.array([family.head * 0.75, thin, 0.80 * depth, depth, 0.60 * depth, 0.9 * family.tail_width])
        self.spine, self.radii = _SPLINE @ spine, _SPLINE @ radii
        along = np.gradient(self.spine, axis=0)
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        self.normal = np.stack([-along[:, 1], along[:, 0]], 1)  # unit normals of the spine, pointing towards the back
        self.across = self.radii[:, None] * self.normal

        # Coordinate axes of the head and of the tail: matrices with the rows forward and up.
        nod = math.radians(random.normal(3, 11))
        look = -1.0 if random.random() < 0.12 else 1.0  # -1 turns the head to look over the shoulder
        self.face = np.array([[look * math.cos(nod), -math.sin(nod)], [-look * math.sin(nod), -math.cos(nod)]])
        swing = turn + math.radians(random.normal(-4, 11))
        self.tail = np.array([[-math.cos(swing), math.sin(swing)], [-math.sin(swing), -math.cos(swing)]])
        self.raised = random.random() < 0.22
        self.flap, self.droop = random.uniform(55, 125), random.normal(0, 0.08)
        self.spots = random.uniform(-1, 1, (16, 2))
        # Plumage colours: those of the species, varied slightly for each bird.
        tints = 1 + random.normal(0, 0.05, (len(PARTS), 3)) + random.normal(0, 0.06, (len(PARTS), 1))
        plain = np.array([species.colour(part) for part in PARTS])
        rows = (plain * tints + 4).clip(0, 255).astype(int).tolist()
        self.colours: dict[str, Colour] = {part: (r, g, b) for part, (r, g, b) in zip(PARTS, rows, strict=True)}
        self.matrix, self.shift, self.unit = np.eye(2), np.zeros(2), 1.0

        # Legs hang straight down, regardless of the posture of the body.
        stand = self.at(0.60, 0.85)
        gap = family.leg * random.uniform(0.8, 1.0)
        self.hips = [stand + np.array([0.05, 0.0]), stand - np.array([0.06, 0.01])]
        self.ground = [hip + np.array([random.normal(0, 0.04), gap + 0.1]) for hip in self.hips]

    def place(self, random: np.random.Generator, pixels: int) -> None:
        """Tilt, mirror, foreshorten and shift the bird at random; scale it to 58 to 95 % of the canvas side."""
        tilt = math.radians(random.normal(0, 6))
        mirror = random.choice([-1.0, 1.0])
        squeeze = mirror * random.uniform(0.74, 1.0)
        self.matrix = np.array([[math.cos(tilt), -math.sin(tilt)], [math.sin(tilt), math.cos(tilt)]]) * [squeeze, 1.0]
        reach = np.concatenate(
            [
                self.on_head([(1 + self.bill_length, 0), (0, 1.2)]),
                self.on_tail([(1, 0)]),
                self.strip(0.0, 1.0, -1.0, 1.0),
                self.ground,
            ]
        )
        low, high = (reach @ self.matrix.T).min(0), (reach @ self.matrix.T).max(0)
        self.unit = random.uniform(0.58, 0.95) * pixels / float((high - low).max())
        free = pixels - self.unit * (high - low)
        spot = random.uniform(0.15, 0.85, 2) * free
        self.shift = spot - self.unit * low

    @property
    def feet(self) -> Floats:
        """Positions of the two feet on the canvas, in pixels, shape (2, 2)."""
        return self.on_canvas(np.array(self.ground))

    def at(self, t: float, v: float) -> Floats:
        """Return the point on the body at coordinates t along the body and v across it.

        t runs from 0 (head) to 1 (tail), v from -1 (back) to 1 (belly).
        """
        point: Floats = self.on_body([(t, v)])[0]
        return point

    def on_body(self, places: Places) -> Floats:
        """Return points on the body (n, 2) for several pairs of coordinates (t, v), which are defined as in `at`."""
        t, v = np.array(places, float).T
        index = t * (SAMPLES - 1)
        before = np.minimum(index.astype(int), SAMPLES - 2)
        part = (index - before)[:, None]
        spine, across = (
            (1 - part) * values[before] + part * values[before + 1] for values in (self.spine, self.across)
        )
        points: Floats = spine - v[:, None] * across
        return points

    def on_head(self, places: Places) -> Floats:
        """Convert head coordinates (forward, up from the centre, in head radii) to coordinates in body lengths."""
        points: Floats = self.head_at + self.species.family.head * (np.asarray(places, float) @ self.face)
        return points

    def on_tail(self, places: Places) -> Floats:
        """Convert tail coordinates (along in tail lengths, up in body lengths) to coordinates in body lengths."""
        length = self.species.family.tail * self.species.stretch
        points: Floats = self.spine[-1] + (np.asarray(places, float) * [length, 1.0]) @ self.tail
        return points

    def on_canvas(self, points: Floats) -> Floats:
        """Convert coordinates in body lengths to pixel positions on the canvas."""
        pixels: Floats = self.unit * (points @ self.matrix.T) + self.shift
        return pixels

    @property
    def bill_length(self) -> float:
        """Length of the bill, measured from the edge of the head, in head radii."""
        return self.species.family.bill_length * self.species.stretch

    def strip(self, t0: float, t1: float, v0: float, v1: float | Floats) -> Floats:
        """Return the outline of the part of the body with coordinates t0 to t1 along and v0 to v1 across the body.

        If `v1` is an array, it holds the limits across the body at evenly spaced positions from t0 to t1.
        """
        first, last = round(t0 * (SAMPLES - 1)), round(t1 * (SAMPLES - 1))
        rows = slice(first, last + 1)
        if isinstance(v1, np.ndarray):
            v1 = np.interp(np.linspace(0, 1, last + 1 - first), np.linspace(0, 1, len(v1)), v1)[:, None]
        across = self.across[rows]
        return np.concatenate([self.spine[rows] - v0 * across, (self.spine[rows] - v1 * across)[::-1]])


def _spline(knots: int) -> Floats:
    """Return weights (SAMPLES, knots) that map `knots` points to SAMPLES points on a Catmull-Rom spline."""
    place = np.linspace(0, knots - 1, SAMPLES)
    basis = np.zeros((SAMPLES, knots))
    for row, x in enumerate(place):
        i = min(int(x), knots - 2)
        u = x - i
        weights = (
            (-u + 2 * u**2 - u**3) / 2,
            (2 - 5 * u**2 + 3 * u**3) / 2,
            (u + 4 * u**2 - 3 * u**3) / 2,
            (u**3 - u**2) / 2,
        )
        for offset, weight in zip((-1, 0, 1, 2), weights, strict=True):
            basis[row, min(max(i + offset, 0), knots - 1)] += weight
    return basis


_SPLINE = _spline(6)


_SPLINE = _spline(6)
