"""Exact representation of three embeddings of any dimension in the plane that they span.

Three points lie in an affine plane. Each point is x = u B + h v. The vector u (2,) holds its coordinates in that plane,
relative to the foot of the perpendicular from the origin; B (2, D) is an orthonormal basis of the plane; v is the unit
vector from the origin towards the foot and h >= 0 is the distance of the plane from the origin. Then, exactly,

    |x - y| = |u - w|,    x.y = u.w + h^2,    |x|^2 = |u|^2 + h^2,

where w holds the coordinates of y. A loss that depends only on edge lengths and squared norms, as all triplet losses of
the catalogue do, therefore has the same energy in the plane. By the chain rule its gradient at x is the sum of (x -
y)/|x - y| d loss/d|x - y| over the other two points y, plus 2 x d loss/d|x|^2:

- For a loss that depends on the three distances alone, forces are combinations of the edge vectors and lie in the
plane. A drawing of the plane is complete, and the position of the origin is irrelevant.
- For a loss that depends on norms or inner products (`needs_origin`), points and origin span up to three dimensions.
The plane shows the force except for its component along v, -2 h d loss/d|x|^2, which vanishes if the plane contains the
origin.
- The unit sphere intersects the plane in a circle of radius sqrt(1 - h^2) about the foot. On this sphere, normalisation
removes the component of a force along the position vector of its point (`radial`); the rest (`tangential`) may have a
component normal to the plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike

from dmlcore.geometry.field_table import edge_gradient, field_table
from dmlcore.geometry.forces import EdgeEnergy
from dmlcore.geometry.triplet import Edges, Triplet
from dmlcore.typing import Floats

NAMES = ("anchor", "positive", "negative")
LETTERS = ("A", "P", "N")
FLAT = 1e-12  # a component shorter than this fraction of its vector is a rounding error
OPPOSITE = 1e-6  # unit vectors x and y count as opposite if |x + y| is below this value


@dataclass(frozen=True, eq=False)
class EmbeddedTriplet:
    """Anchor A, positive P and negative N in the plane that they span.

    The first axis points from A to P, and N lies on the positive side of the line through A and P. Points that do not
    span a plane (rank below 2) are placed in a plane through the origin, so that h = 0.
    """

    points: Floats  # (3, 2) coordinates u of anchor, positive and negative
    height: float  # distance h of the plane from the origin
    basis: Floats  # (2, D) basis B; the second row is zero if D = 1
    normal: Floats  # (D,) unit vector v; zero if h = 0
    rank: int  # 0: all points coincide, 1: they lie on a line, 2: they span a plane

    @property
    def lengths(self) -> Floats:
        """Norms of the three embeddings |a|, |p|, |n|, shape (3,)."""
        return np.asarray(np.hypot(np.hypot(*self.points.T), self.height))

    def lift_points(self, at: ArrayLike) -> Floats:
        """Map coordinates in the plane (..., 2) to embeddings (..., D)."""
        return np.asarray(at, np.float64) @ self.basis + self.height * self.normal

    def lift_vectors(self, along: ArrayLike, off: ArrayLike = 0.0) -> Floats:
        """Map vectors in the plane (..., 2), plus components `off` (...) normal to the plane, to vectors (..., D)."""
        return np.asarray(along, np.float64) @ self.basis + np.asarray(off, np.float64)[..., None] * self.normal


def embed(anchor: ArrayLike, positive: ArrayLike, negative: ArrayLike) -> EmbeddedTriplet:
    """Return three embeddings of shape (D,) as points of the plane through them, computed in float64.

    Raises:
        ValueError: If the embeddings are not finite vectors of the same shape.
    """
    a, p, n = (_vector(name, x, anchor) for name, x in zip(NAMES, (anchor, positive, negative), strict=True))
    rows: list[Floats] = []
    rank = 0
    for edge in (p - a, n - a):
        if (direction := _orthogonal_part(edge, rows)) is not None:
            rows.append(direction)
            rank += 1
    # For coincident or collinear points complete the basis with the direction to the origin, then with coordinate axes.
    for spare in (a, *np.eye(len(a))):
        if len(rows) < 2 and (direction := _orthogonal_part(spare, rows)) is not None:
            rows.append(direction)
    basis = np.stack([*rows, *np.zeros((2 - len(rows), len(a)))])
    points = np.stack((a, p, n)) @ basis.T
    foot = a - points[0] @ basis
    foot -= (foot @ basis.T) @ basis
    height = float(np.linalg.norm(foot))
    if height <= FLAT * float(np.linalg.norm(a)):
        return EmbeddedTriplet(points, 0.0, basis, np.zeros_like(a), rank)
    return EmbeddedTriplet(points, height, basis, foot / height, rank)


def _vector(name: str, value: ArrayLike, anchor: ArrayLike) -> Floats:
    x = np.asarray(value, np.float64)
    if x.ndim != 1 or not len(x) or x.shape != np.shape(anchor):
        raise ValueError(f"{name} must be a vector (D,) like the anchor, {np.shape(anchor)}, got shape {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return x


def _orthogonal_part(vector: Floats, rows: list[Floats]) -> Floats | None:
    """Return the normalised component of `vector` orthogonal to the orthonormal `rows`.

    The result is None if that component is only rounding error.
    """
    rest = vector
    for _ in range(2):  # the second pass removes the rounding errors of the first
        for row in rows:
            rest = rest - (rest @ row) * row
    length, whole = float(np.linalg.norm(rest)), float(np.linalg.norm(vector))
    return rest / length if length > FLAT * whole else None


def raise_triplet(triplet: Triplet, height: float, unit: float = 1.0) -> Triplet:
    """Convert a triplet given in the coordinates of a plane off the origin to the triplet of embeddings.

    Lengths are multiplied by `unit`. Squared norms are multiplied by unit^2, then increased by height^2.

    Args:
        triplet: Triplet of points in the plane.
        height: Distance of the plane from the origin.
        unit: Length of one coordinate unit.
    """
    return Triplet(
        lambda pair: unit * getattr(triplet, f"d_{pair}"),
        lambda vertex: unit**2 * getattr(triplet, 2 * vertex) + height**2,
        triplet.floor,
    )


def needs_origin(loss: EdgeEnergy) -> bool:
    """Return True if a loss depends on norms, according to its derivatives at random triplets."""
    generator = torch.Generator().manual_seed(0)
    a, p, n = torch.randn(3, 64, 3, generator=generator, dtype=torch.float64)
    _, by = edge_gradient(loss, Edges.of(a, p, n))
    return any(bool((slope != 0).any()) for slope in (by.aa, by.pp, by.nn))


@dataclass(frozen=True, eq=False)
class PlaneForces:
    """Forces on anchor, positive and negative of an embedded triplet, minus the gradient of the clamped loss.

    All forces are zero unless the energy before the clamp satisfies 0 < raw < m2. A force equals in_plane B + off_plane
    v, where B is the basis and v the normal of the plane (`EmbeddedTriplet`). `radial` (positive outward) is its
    component along the position vector of its point, which normalisation removes. The remaining tangential force has
    the components `tangential` in the plane and `tangential_off` along v.
    """

    raw: float
    active: bool
    in_plane: Floats  # (3, 2)
    off_plane: Floats  # (3,)
    radial: Floats  # (3,) positive outward; 0 for a point at the origin
    tangential: Floats  # (3, 2)
    tangential_off: Floats  # (3,)

    @property
    def sizes(self) -> Floats:
        """Length of the force on each point, shape (3,)."""
        return np.asarray(np.hypot(np.hypot(*self.in_plane.T), self.off_plane))

    @property
    def tangential_sizes(self) -> Floats:
        """Length of the tangential force on each point, shape (3,)."""
        return np.asarray(np.hypot(np.hypot(*self.tangential.T), self.tangential_off))


def forces_in_plane(loss: EdgeEnergy, triplet: EmbeddedTriplet) -> PlaneForces:
    """Compute the forces of the clamped loss on an embedded triplet from its coordinates in the plane.

    `triplet.lift_vectors(f.in_plane, f.off_plane)` of the result f equals `geometry.forces` on the embeddings up to
    rounding.
    """
    points = np.column_stack((triplet.points, np.full(3, triplet.height)))  # components along B, then along v
    table = field_table(loss, *torch.from_numpy(points))
    forces = torch.stack(table.forces).numpy()
    lengths = triplet.lengths
    outward = points / np.where(lengths > 0, lengths, 1.0)[:, None]
    radial = (forces * outward).sum(1)
    tangential = forces - radial[:, None] * outward
    return PlaneForces(
        float(table.raw), bool(table.active), forces[:, :2], forces[:, 2], radial, tangential[:, :2], tangential[:, 2]
    )


def remarks(triplet: EmbeddedTriplet, *, on_sphere: bool) -> tuple[str, ...]:
    """Return one sentence for each degeneracy of a triplet.

    Degeneracies are coincident and collinear points and, if `on_sphere`, opposite points.
    """
    sentences = []
    pairs = [(0, 1), (0, 2), (1, 2)]
    together = [pair for pair in pairs if not np.any(triplet.points[pair[0]] - triplet.points[pair[1]])]
    if len(together) == 3:
        sentences.append("All three embeddings are the same: no direction leads from one to another, so nothing moves.")
    else:
        sentences += [
            f"{LETTERS[i]} and {LETTERS[j]} have the same embedding: no direction leads from one to the other, so "
            "neither pulls or pushes the other."
            for i, j in together
        ]
        if triplet.rank < 2:
            sentences.append(
                "The embeddings lie on one line. Of the planes through it, the one with the origin is drawn."
            )
    if on_sphere:
        for i, j in pairs:
            if np.hypot(np.hypot(*(triplet.points[i] + triplet.points[j])), 2 * triplet.height) < OPPOSITE:
                sentences.append(
                    f"{LETTERS[i]} and {LETTERS[j]} lie opposite each other on the sphere: a force between them points "
                    "along the radius, which the sphere takes up whole."
                )
    return tuple(sentences)
