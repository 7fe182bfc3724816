"""Sets {raw > level} of the plane from which active regions are built, with area and description.

raw is the energy of a triplet loss before the clamp, as a function of the position of the negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import ellipe, ellipk

from dmlcore.geometry.derivations import number
from dmlcore.geometry.triplet import FLOOR
from dmlcore.typing import Floats

# Regions larger than FAR times d_ap are replaced with a disc, to which they are equal up to a relative error of 1e-12.
FAR = 1e6
EPS = 4 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class PlanePair:
    """Anchor a and positive p in the plane, shape (2,) each.

    `d` is their distance and `midpoint` their midpoint M. `frame` holds the axes along and across the line from a to p.
    """

    a: Floats
    p: Floats
    d: float = field(init=False)
    midpoint: Floats = field(init=False)
    frame: Floats = field(init=False)  # (2, 2): rows are unit vectors from a to p and perpendicular to that

    def __post_init__(self) -> None:
        edge = self.p - self.a
        d = float(np.hypot(*edge))
        x, y = edge / d if d > 0 else (1.0, 0.0)
        for name, value in (("d", d), ("midpoint", (self.a + self.p) / 2), ("frame", np.array([[x, y], [-y, x]]))):
            object.__setattr__(self, name, value)

    def place(self, local: Floats) -> Floats:
        """Convert local coordinates (..., 2) from the midpoint M, along and across the line from a to p, to points."""
        return self.midpoint + local @ self.frame


@dataclass(frozen=True)
class LevelSet:
    """Set of positions of the negative in the plane at which the energy before the clamp, raw, exceeds a level.

    `words` describes the set. `reach` says how to use `area`. For "bounded", `area` is the area of the set. For "all
    but bounded", it is minus the area of the complement, so that the difference between two sets of this kind has the
    right area. For "neither" (a half plane) it has no meaning. `exact` is False if the set is contoured on a grid.
    """

    words: str
    area: float
    reach: Literal["bounded", "all but bounded", "neither"] = "bounded"
    exact: bool = True

    @property
    def empty(self) -> bool:
        """True if the set contains no point."""
        return self.reach == "bounded" and self.area == 0


NOTHING = LevelSet("empty", 0.0)
EVERYTHING = LevelSet("the whole plane", 0.0, "all but bounded")


def disc(centre: str, square_radius: float) -> LevelSet:
    """Return the disc around the point named `centre`, or the empty set unless square_radius > 0."""
    if not square_radius > 0:
        return NOTHING
    return LevelSet(f"disc about {centre}, radius {math.sqrt(square_radius):.4g}", math.pi * square_radius)


def outside(centre: str, square_radius: float) -> LevelSet:
    """Return the complement of the disc around `centre`; the whole plane unless square_radius > 0."""
    if not square_radius > 0:
        return EVERYTHING
    inside = disc(centre, square_radius)
    return LevelSet(f"all but the {inside.words}", -inside.area, "all but bounded")


def shell(centre: str, inner: float, outer: float) -> LevelSet:
    """Return the ring with radii `inner` and `outer` around `centre`; a disc if the inner radius is 0."""
    if not inner > 0:
        return disc(centre, outer**2)
    words = f"shell about {centre}, radii {inner:.4g} to {outer:.4g}"
    return LevelSet(words, math.pi * (outer - inner) * (outer + inner))


def half_plane(normal: Floats, bound: float) -> LevelSet:
    """Return the set of points x with normal . x > bound.

    If the bounding line lies beyond floating-point range, the set is the whole plane or empty.
    """
    length = float(np.hypot(*normal))
    if abs(bound) >= 1e150 * length:
        return EVERYTHING if bound < 0 else NOTHING
    unit, offset = normal / length, bound / length
    words = f"half plane beyond the line at {offset:.4g} from the origin along ({unit[0]:.4g}, {unit[1]:.4g})"
    return LevelSet(words, math.inf, "neither")


def ellipse(pair: PlanePair, major: float) -> LevelSet:
    """Return the interior of the ellipse d_an + d_pn < 2 `major`, with foci a and p and semi-major axis `major`."""
    if not major > pair.d / 2:
        return NOTHING
    minor = math.sqrt((major - pair.d / 2) * (major + pair.d / 2))
    return LevelSet(f"ellipse, semi-axes {major:.4g} and {minor:.4g}, foci A and P", math.pi * major * minor)


@dataclass(frozen=True)
class RadialTerm:
    """Increasing function of a distance, with its inverse and its derivative.

    `convex` is True for a convex function. Otherwise the function is concave and steepest at distance 0.
    """

    value: Callable[[Floats], Floats]
    inverse: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    convex: bool = False

    def at(self, d: float) -> float:
        """Return the value of the function at distance `d`."""
        return float(self.value(np.asarray(d)))

    def back(self, value: float) -> float:
        """Return the distance at which the function has this value; NaN or a number <= 0 if there is none."""
        return float(self.inverse(np.asarray(value)))


LOGARITHM = RadialTerm(np.log, np.exp, lambda d: 1 / d)


def power(q: float) -> RadialTerm:
    """Return the power function P_q(d) = d^q / q as a radial term; q is not 0."""

    def inverse(v: Floats) -> Floats:
        # Invalid values must be masked, because for q = 1/2 the power is a square and thus positive for any base.
        return np.where(q * v < 0, np.nan, q * v) ** (1 / q)

    return RadialTerm(lambda d: d**q / q, inverse, lambda d: d ** (q - 1), convex=q > 1)


def cassini(pair: PlanePair, bound: float) -> LevelSet:
    """Return the set log d_an + log d_pn < bound, a Cassini oval that may consist of two lobes around a and p.

    The area is computed with elliptic integrals.
    """
    product, square = math.exp(min(bound, 700.0)), pair.d**2 / 4
    oval = two_distances(pair, LOGARITHM, bound, rf"$d_{{an}}\,d_{{pn}}<{number(product, 4)}$")
    if oval.empty or oval.reach != "bounded" or pair.d == 0:
        return oval
    if product > square:
        area = 2 * product * float(ellipe((square / product) ** 2))
    else:
        k = (product / square) ** 2
        # Use the series pi k/4 (1 + k/8 + 3k^2/64 + ...) for small k, where the difference E(k) - (1-k) K(k) cancels.
        series = math.pi * k / 4 * (1 + k / 8 + 3 * k**2 / 64)
        area = 2 * square * (series if k < 1e-4 else float(ellipe(k) - (1 - k) * ellipk(k)))
    return replace(oval, words=f"Cassini oval, {oval.words}", area=area)


def two_distances(pair: PlanePair, law: RadialTerm, bound: float, formula: str) -> LevelSet:
    """Return the set law(d_an) + law(d_pn) < bound, with the area by quadrature.

    `law` is an increasing function of a distance. `formula` is the inequality in LaTeX, for the description of the set.
    """
    # The function may diverge at 0, and its inverse is NaN outside its range; the code below handles both.
    with np.errstate(all="ignore"):
        d, c = pair.d, pair.d / 2
        # distance from a (and p) at which the boundary crosses the perpendicular bisector
        bisector = law.back(bound / 2)
        least = 2 * law.at(c) if law.convex else law.at(0) + law.at(d)
        if not bound > least:
            return NOTHING
        # Return the whole plane if the bound exceeds all values of the function, or if the set exceeds the
        # floating-point range.
        if not 0 < bisector < 1e150:
            return EVERYTHING
        if bisector > FAR * d:
            return disc("M", bisector**2 - c**2)
        far = _far_end(law, bound, d, bisector)
        if bound > 2 * law.at(c):
            outline, pieces = _Outline(d, law, bound, False, bisector, d + far), "one piece"
        elif far < FLOOR:  # the lobes lie within FLOOR of a and p, where diverging functions are held constant
            return NOTHING
        else:
            outline, pieces = _Outline(d, law, bound, True, -_inner_end(law, bound, d), far), "two lobes"
        return LevelSet(f"{pieces} about A and P, {formula}", outline.area())


@dataclass(frozen=True)
class _Outline:
    """Boundary law(x) + law(y) = bound in one quarter of the plane; the other three quarters are mirror images.

    x and y are the distances from a and p, which are `d` apart. The quarter lies on the side of a, above the line
    through a and p, so y is the larger distance. The boundary is given as a function of y, x = law^-1(bound - law(y)).
    y increases from the perpendicular bisector to the far end on the line through a and p. If the boundary consists of
    two lobes, y starts at the inner end of the lobe around a instead. The parameter v runs from `low` to `high`. It is
    y, or y - d for lobes, so that the coordinates of tiny lobes keep their precision.
    """

    d: float
    law: RadialTerm
    bound: float
    lobes: bool
    low: float
    high: float

    def area(self) -> float:
        """Return the area of all four quarters by Gauss-Legendre quadrature in a parameter phi, 0..pi.

        `along` is the coordinate of the boundary on the line through a and p, `across` the one perpendicular to it, and
        `speed` minus the derivative of `along` with respect to v. The origin is point a if the boundary consists of two
        lobes, otherwise the midpoint of a and p.
        """
        phi, weights = _nodes()
        d, law, half = self.d, self.law, (self.high - self.low) / 2
        v = self.low + half * (1 - np.cos(phi))  # the cosine removes the square-root singularities at both ends
        y = v + d if self.lobes else v
        x = law.inverse(np.maximum(self.bound - law.value(y), law.at(0)))
        if self.lobes:
            along, square = (x**2 - v * (v + 2 * d)) / (2 * d), x**2
        else:
            along, square = (x - y) * (x + y) / (2 * d), (x**2 + y**2) / 2 - d**2 / 4
        # The distance from the centre is exact, so an error in `along` only moves the point along the boundary.
        along = np.clip(along, -np.sqrt(square), np.sqrt(square))
        across = np.sqrt(np.maximum(square - along**2, 0))
        speed = np.nan_to_num((y + x * law.slope(y) / law.slope(x)) / d, posinf=0.0)
        return 4 * float(weights @ (across * (speed * half * np.sin(phi))))


def _far_end(law: RadialTerm, bound: float, d: float, bisector: float) -> float:
    """Return the distance beyond a, away from p, at which the boundary meets the line through a and p.

    The distance is negative if this point lies between a and p.
    """

    def excess(x: float) -> float:
        return law.at(abs(x)) + law.at(x + d) - bound

    if law.convex:
        return _root(excess, max(bisector - d, -d / 2), bisector)
    return _root(excess, float(np.nan_to_num(law.back(bound - law.at(bisector + d)))), bisector)


def _inner_end(law: RadialTerm, bound: float, d: float) -> float:
    """Return the distance from a at which the lobe around a ends on the segment from a to p."""

    def excess(x: float) -> float:
        return law.at(x) + law.at(d - x) - bound

    return _root(excess, law.back(bound - law.at(d)), d / 2)


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of an increasing function between `low` and `high`.

    If rounding errors hide the change of sign, the end of the bracket nearer to the root is returned.
    """
    if excess(low) >= 0:
        return float(low)
    if excess(high) <= 0:
        return float(high)
    return float(brentq(excess, low, high, xtol=1e-300, rtol=EPS))


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Return 240 Gauss-Legendre nodes on 0..pi and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(240)
    return (nodes + 1) * np.pi / 2, weights * np.pi / 2
