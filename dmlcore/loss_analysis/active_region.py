"""Active region of a triplet loss in the plane: the positions at which a negative receives a force.

These are the positions with 0 < raw < m2, where raw is the energy before the clamp and m2 the upper clamp.
`CLOSED_FORMS` maps the name of a loss to a function that returns the set {raw > level} exactly. The level is 0 for the
outer boundary of the region and m2 for the inner one. For losses without a closed form the set is contoured on a grid.

Reference: Karaman 2021, Sec. 3.2 and Eq. 3.20, corrected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from dmlcore.geometry.derivations import number
from dmlcore.geometry.triplet import FLOOR, power_potential
from dmlcore.loss_analysis.contours import contour_set
from dmlcore.loss_analysis.level_sets import (
    EVERYTHING,
    NOTHING,
    LevelSet,
    PlanePair,
    RadialTerm,
    cassini,
    disc,
    ellipse,
    half_plane,
    outside,
    power,
    shell,
    two_distances,
)
from dmlcore.losses.engine.triplet_loss import TripletLoss
from dmlcore.losses.potentials import NEAREST
from dmlcore.typing import Floats

# an exponent q with |q| below this value counts as 0, for which P_q is the logarithm (see power_potential)
LOG_ZONE = 1e-9


@dataclass(frozen=True)
class ActiveRegion:
    """Positions at which a negative receives a force, 0 < raw < m2, for a fixed anchor and positive.

    Attributes:
        area: Area, inf if the region is unbounded.
        shape: Description in words, with LaTeX between dollar signs.
        latex: Formula of the outer boundary, or "" for a contoured region.
        closed_form: True if the area is exact or computed by quadrature, False if the region is contoured on a grid.
    """

    area: float
    shape: str
    latex: str
    closed_form: bool


SetAbove = Callable[[TripletLoss, PlanePair, float], LevelSet]
CLOSED_FORMS: dict[str, tuple[SetAbove, str | Callable[[TripletLoss], str]]] = {}


def active_region(loss: TripletLoss, anchor: ArrayLike, positive: ArrayLike) -> ActiveRegion:
    """Return the region of the plane in which a negative receives a gradient.

    Args:
        loss: Triplet loss.
        anchor: Shape (2,).
        positive: Shape (2,).

    Raises:
        ValueError: If a point is not two finite coordinates; the message names the argument.
    """
    pair = PlanePair(_point("anchor", anchor), _point("positive", positive))
    set_above, latex = CLOSED_FORMS.get(loss.formula.name, (contour_set, ""))
    outer = set_above(loss, pair, 0.0)
    inner = set_above(loss, pair, loss.m2) if loss.m2 < math.inf else NOTHING
    return ActiveRegion(
        _difference(outer, inner),
        _words(outer, inner),
        latex if isinstance(latex, str) else latex(loss),
        outer.exact and inner.exact,
    )


def _point(name: str, value: ArrayLike) -> Floats:
    point = np.asarray(value, dtype=np.float64)
    if point.shape != (2,) or not np.isfinite(point).all():
        raise ValueError(f"{name} must be two finite coordinates, got {value!r}")
    return point


def _difference(outer: LevelSet, inner: LevelSet) -> float:
    """Return the area of the set `outer` minus that of its subset `inner`; inf if unbounded."""
    if outer.reach != inner.reach or outer.reach == "neither":
        return outer.area if outer.reach == "bounded" else math.inf
    return max(0.0, outer.area - inner.area)


def _words(outer: LevelSet, inner: LevelSet) -> str:
    if outer.empty or inner is EVERYTHING:
        return "empty" if outer.empty else "empty: raw exceeds m2 everywhere"
    return outer.words if inner.empty else f"{outer.words}; hole: {inner.words}"


def closed_form(name: str, latex: str | Callable[[TripletLoss], str]) -> Callable[[SetAbove], SetAbove]:
    """Decorate a function that returns the set {raw > level} to register it as the closed form of the loss `name`.

    Args:
        name: Name of the loss.
        latex: Formula of the outer boundary and the area, or a function of the loss that returns it.
    """

    def enter(set_above: SetAbove) -> SetAbove:
        CLOSED_FORMS[name] = set_above, latex
        return set_above

    return enter


def _own(loss: TripletLoss, name: str) -> float:
    return float(loss.hyper[name])


@closed_form("hoffer", r"\sigma(d_{ap}-d_{an})^2>0\ \text{everywhere}")
def _hoffer(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    root = math.sqrt(max(level, 0.0))
    if not 0 < root < 1:
        return EVERYTHING if root == 0 else NOTHING
    return disc("A", max(0.0, pair.d - math.log(root / (1 - root))) ** 2)


@closed_form("npairs", r"\log\!\left(1+e^{a^\top n-a^\top p}\right)>0\ \text{everywhere}")
def _npairs(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    if level <= 0:
        return EVERYTHING
    return half_plane(pair.a, float(pair.a @ pair.p) + level + math.log(-math.expm1(-level)))


@closed_form(
    "potential",
    r"\min(d_{an}/\delta,1)^{-\alpha}>\max(d_{ap}/\delta,1)^{-\alpha}",
)
def _potential(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    alpha, delta = _own(loss, "alpha"), _own(loss, "delta")
    bound = max(level, 0.0) + max(pair.d / delta, 1.0) ** -alpha  # the set is repulsion > bound
    if bound < 1:
        return EVERYTHING
    squared = bound ** (-2 / alpha)  # (d_an / delta)^2 at the boundary
    if squared < NEAREST**2:
        q = alpha / 2
        squared = NEAREST**2 - (bound - NEAREST**-alpha) / q * NEAREST ** (alpha + 2)
    return disc("A", delta**2 * max(squared, 0.0))


@closed_form("ranking", r"d_{an}=d_{ap}+m,\quad\text{area}=\pi\,(d_{ap}+m)^2")
def _ranking(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    return disc("A", max(0.0, pair.d + loss.margin - level) ** 2)


@closed_form("facenet", r"d_{an}^2=d_{ap}^2+m,\quad\text{area}=\pi\,(d_{ap}^2+m)")
def _facenet(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    return disc("A", pair.d**2 + loss.margin - level)


@closed_form("facenet_mined", r"d_{ap}^2<d_{an}^2<d_{ap}^2+m,\quad\text{area}=\pi\,m")
def _facenet_mined(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    return _facenet(loss, pair, level)


@closed_form("ratio", r"d_{an}=d_{ap}+m,\quad\text{area}=\pi\,(d_{ap}+m)^2")
def _ratio(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    return disc("A", ((pair.d + _own(loss, "m")) * max(0.0, 1 - level)) ** 2)


@closed_form(
    "angular",
    r"\left\lVert n-\tfrac{a+p}{2}\right\rVert^2=\frac{d_{ap}^2+m}{4\tan^2\!\rho},"
    r"\quad\text{area}=\frac{\pi\,(d_{ap}^2+m)}{4\tan^2\!\rho}",
)
def _angular(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    excess, tan2 = pair.d**2 + loss.margin - level, math.tan(_own(loss, "rho")) ** 2
    if 4 * tan2 * 1e150 < 1:
        return EVERYTHING if excess > 0 else NOTHING
    return disc("M", excess / (4 * tan2))


@closed_form(
    "moving",
    r"d_{an}^3-(d_{ap}^2+m)\,d_{an}+\frac{\rho k}{d_{ap}}=0,\quad k=1-a^\top p,"
    r"\quad\text{area}=\pi\left(x_{\text{out}}^2-x_{\text{in}}^2\right)",
)
def _moving(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    w0 = 1 - float(pair.a @ pair.a + pair.p @ pair.p) / 2
    q = _own(loss, "rho") * (w0 / max(pair.d, FLOOR) + pair.d / 2)  # rho k / d_ap
    Q = pair.d**2 + loss.margin - level

    def cubic(x: float) -> float:  # negative if d_an = x belongs to the set
        return (x * x - Q) * x + q

    def root(low: float, high: float) -> float:
        if (cubic(low) < 0) == (cubic(high) < 0):
            return high  # no change of sign, because rounding errors hide it
        return float(brentq(cubic, low, high, xtol=1e-300, rtol=1e-15))

    valley = max(math.sqrt(max(Q, 0.0) / 3), FLOOR)  # minimum of the cubic; distances below FLOOR count as FLOOR
    if not cubic(valley) < 0:
        return NOTHING
    # The second argument is an upper bracket, at which the cubic is not negative.
    outer = root(valley, math.sqrt(max(Q, 0.0)) + max(-q, 0.0) ** (1 / 3))
    return shell("A", root(FLOOR, valley) if cubic(FLOOR) > 0 else 0.0, outer)


LIFTED = RadialTerm(lambda d: -np.exp(-d), lambda v: -np.log(-v), lambda d: np.exp(-d))


@closed_form("lifted", r"e^{-d_{an}}+e^{-d_{pn}}=e^{-(d_{ap}+m)}")
def _lifted(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    # Cap the exponent at 1: the sum of both exponentials is at most 2, so the set is empty for any bound above 2.
    bound = math.exp(min(level - loss.margin - pair.d, 1.0))
    return two_distances(pair, LIFTED, -bound, rf"$e^{{-d_{{an}}}}+e^{{-d_{{pn}}}}>{number(bound, 4)}$")


@closed_form(
    "entangle",
    r"\left\lVert n-\tfrac{a+p}{2}\right\rVert^2=\tfrac14 d_{ap}^2+m,"
    r"\quad\text{area}=\pi\left(\tfrac14 d_{ap}^2+m\right)",
)
def _entangle(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    return disc("M", pair.d**2 / 4 + loss.margin - level)


def _location_latex(loss: TripletLoss) -> str:
    if loss.hyper["variant"] == "printed":
        return r"\left\lVert n+a+p\right\rVert^2=4\,a^\top p-2m"
    return r"\left\lVert n-a-p\right\rVert^2=2\left(|a|^2+|p|^2+m\right)"


@closed_form("location_aware", _location_latex)
def _location_aware(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    margin, a, p = loss.margin - level, pair.a, pair.p
    if loss.hyper["variant"] == "printed":
        return outside("-(A+P)", float(4 * (a @ p) - 2 * margin))
    return disc("A+P", 2 * float(a @ a + p @ p + margin))


_ELLIPSE = r"d_{an}+d_{pn}=2A,\quad A=\frac{%s}{2\rho},\quad B=\sqrt{A^2-\tfrac14 d_{ap}^2},\quad\text{area}=\pi A B"


@closed_form("modified_entangle", _ELLIPSE % "d_{ap}+m")
def _modified_entangle(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    return ellipse(pair, (pair.d + loss.margin - level) / (2 * _own(loss, "rho")))


def _distance_sensitive_latex(loss: TripletLoss) -> str:
    q, s = 1 - _own(loss, "r"), _own(loss, "s")
    pull = r"\log\,d_{ap}" if abs(s + 1) < LOG_ZONE else r"\frac{d_{ap}^{s+1}}{s+1}"
    energy = rf"E={pull}+m_1"
    if q == 2:
        radius = r"\frac{E}{\rho}-\tfrac14 d_{ap}^2"
        return (
            rf"\left\lVert n-\tfrac{{a+p}}{{2}}\right\rVert^2={radius},\quad {energy},"
            rf"\quad\text{{area}}=\pi\left({radius}\right)"
        )
    if q == 1:
        return _ELLIPSE % "E" + rf",\quad {energy}"
    if abs(q) < LOG_ZONE:
        return rf"d_{{an}}\,d_{{pn}}=e^{{E/\rho}},\quad {energy}"
    law = r"d_{an}^{1-r}+d_{pn}^{1-r}=(1-r)\frac{E}{\rho}"
    return rf"{law},\quad {energy}"


@closed_form("distance_sensitive", _distance_sensitive_latex)
def _distance_sensitive(loss: TripletLoss, pair: PlanePair, level: float) -> LevelSet:
    q, rho = 1 - _own(loss, "r"), _own(loss, "rho")
    pull = power_potential(torch.tensor(pair.d, dtype=torch.float64), _own(loss, "s") + 1, floor=FLOOR)
    bound = (float(pull) + loss.margin - level) / rho  # the set is P_q(d_an) + P_q(d_pn) < bound
    if q == 2:
        return disc("M", bound - pair.d**2 / 4)
    if q == 1:
        return ellipse(pair, bound / 2)
    if abs(q) < LOG_ZONE:
        return cassini(pair, bound)
    sign, exponent = "<" if q > 0 else ">", number(q, 4)
    law = rf"$d_{{an}}^{{{exponent}}}+d_{{pn}}^{{{exponent}}}{sign}{number(q * bound, 4)}$"
    return two_distances(pair, power(q), bound, law)
