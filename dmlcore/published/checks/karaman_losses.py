"""Checks of those errata 1 to 36 of Karaman 2021 that concern losses: energies, forces, areas and margins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import torch
from scipy.optimize import brentq, minimize_scalar
from torch import Tensor

from dmlcore import losses
from dmlcore.geometry import forces, margin_enclosing, margin_for_ellipse
from dmlcore.geometry.field_table import edge_gradient
from dmlcore.geometry.triplet import Edges, margin_from_normalised
from dmlcore.loss_analysis.active_region import active_region
from dmlcore.published import printed_formulas
from dmlcore.published.checks.number import Check, Decision, Number, Outcome
from dmlcore.published.printed_formulas import COUNTEREXAMPLES, compare, points

BALANCED = 12 / 7


# ---- energies and forces


def _energies() -> Iterable[Number]:
    example = COUNTEREXAMPLES[21]
    comparison = compare(example, *points(example), {})
    assert comparison.printed_energy is not None
    yield Number("energy on S, printed", "4", float(comparison.printed_energy))
    yield Number("energy on S, true", "-4", float(comparison.true_energy))


def _lifted() -> Iterable[Number]:
    # J is the margin plus a constant, so choose the margin that gives J = 3
    a, p, n = points(COUNTEREXAMPLES[7])
    m = 3 - float(printed_formulas.lifted_energy(a, p, n, m=0.0))
    yield Number("Eq. 2.17 at J = 3", "3", float(printed_formulas.lifted_energy(a, p, n, m=m)))
    yield Number("Eq. 2.16 at J = 3", "4.5", float(printed_formulas.lifted_pair(a, p, n, m=m)))


def _npairs() -> Iterable[Number]:
    example = COUNTEREXAMPLES[8]
    comparison = compare(example, *points(example), {})
    assert comparison.printed_energy is not None
    yield Number("line 1", "1.3133", float(comparison.printed_energy))
    yield Number("line 2 and truth", "0.3133", float(comparison.true_energy))


def _ranking_radius() -> Iterable[Number]:
    loss = losses.create("ranking", m=0.1)
    yield Number("ranking loss at d_ap = 0.05, d_an = 0.2", "0", float(loss.clamped(*_plane((0.05, 0), (0, 0.2)))))
    yield Number("class radius d_ap", "0.05", 0.05)


def _angular_edge() -> Iterable[Number]:
    yield Number("push along p-n", "4.19", _laws("angular", 1, 2, math.sqrt(5), rho=0.6)[2])


def _squared_alpha() -> Iterable[Number]:
    yield Number("penalty max(0, α - d²)", "0.09", max(0.0, 0.25 - 0.4**2))


def _exponents() -> Iterable[Number]:
    for r, stated in ((-1, "2"), (0, "1"), (2, "0.25")):
        near, far = (_laws("distance_sensitive", 1, d, d, s=1, r=r)[1] for d in (1, 2))
        yield Number(f"g_push(2)/g_push(1) at r = {r}", stated, far / near)


def _above_the_window() -> Iterable[Number]:
    # side of an equilateral triplet whose energy before adding the margin is 10
    side = brentq(lambda d: d**2 / 2 + 2 / d - 10, 1.26, 10)
    triplet = _plane((side, 0), (side / 2, side * math.sqrt(3) / 2))
    loss = losses.create("distance_sensitive", s=1, r=2, rho=1, m1=-2, m2=5)
    yield Number("core", "10", float(loss.core(*triplet)))
    yield Number("value", "5", float(loss.clamped(*triplet)))
    yield Number("largest force", "0", max(float(f.norm()) for f in forces(loss, *triplet)))


def _two_symbols() -> Iterable[Outcome]:
    """Test whether -m1 < L < m2 - m1 bounds the active region if L is the raw loss or the energy without margin.

    The referee is the presence of forces on equilateral triplets below and above the upper clamp, with m1 = -2, m2 = 5.
    """
    m1, m2 = -2.0, 5.0
    loss = losses.create("distance_sensitive", s=1, r=2, rho=1, m1=m1, m2=m2)
    for core in (3.0, 8.0):
        side = brentq(lambda d, core=core: d**2 / 2 + 2 / d - core, 1.26, 10)
        triplet = _plane((side, 0), (side / 2, side * math.sqrt(3) / 2))
        raw = float(loss.raw(*triplet))
        moved = max(float(f.norm()) for f in forces(loss, *triplet)) > 0
        yield Decision(
            f"active (1) or not (0) at core {core:g}, raw {raw:g}, by -m1 < L < m2 - m1, L the raw or the core",
            float(-m1 < raw < m2 - m1),
            float(-m1 < core < m2 - m1),
            float(moved),
            "the forces",
        )


def _equilateral() -> Iterable[Number]:
    for side, s, r, stated in ((1, 1, 2, "1"), (2, 0, 0, "1"), (2, 1, 2, "0.125")):
        pull, push, _ = _laws("distance_sensitive", side, side, side, s=s, r=r, rho=1)
        yield Number(f"push/pull at side {side}, (s, r) = ({s}, {r}), in units of ρ", stated, push / pull)


def _rotations() -> Iterable[Number]:
    for r, stated in ((-1, "1.917"), (0, "1.714"), (2, "1.371"), (3, "1.227")):
        law = _laws("distance_sensitive", 1, 0.5, math.hypot(1, 0.5), s=0, r=r, rho=BALANCED)
        yield Number(f"push along p-n, r = {r}", stated, law[2])


def _laws(name: str, ap: float, an: float, pn: float, **hyper: float) -> tuple[float, float, float]:
    """Return pull_ap, push_an and push_pn of the energy before the clamp, for a triplet with the given edge lengths."""
    lengths = [torch.tensor(float(x), dtype=torch.float64) for x in (ap, an, pn, 0, 0, 0)]
    _, by = edge_gradient(losses.create(name, **hyper, m2=math.inf), Edges(*lengths))
    return float(by.ap), -float(by.an), -float(by.pn)


def _plane(p: tuple[float, float], n: tuple[float, float]) -> tuple[Tensor, Tensor, Tensor]:
    a, p_, n_ = (torch.tensor(x, dtype=torch.float64) for x in ((0.0, 0.0), p, n))
    return a, p_, n_


# ---- areas


def _panels() -> Iterable[Number]:
    panels = ((-1, 2.5, 2, "3.665"), (0, 2.5, 2, "2.167"), (2, -3.5, 20, "4.146"), (3, -3.5, 20, "1.660"))
    for r, m1, m2, stated in panels:
        yield Number(f"area of the panel r = {r}", stated, _area(0.5, s=0, r=r, rho=BALANCED, m1=m1, m2=m2))
    for r, stated in zip((-1, 0, 1, 2, 3), ("2.317", "2.445", "2.568", "2.684", "2.790"), strict=True):
        m1 = margin_from_normalised(0.175, s=1, r=r, rho=1)
        yield Number(f"area at μ = 0.175, r = {r}", stated, _area(0.5, s=1, r=r, rho=1, m1=m1, m2=math.inf))


def _hole() -> Iterable[Number]:
    for m1 in (2.5, 4, 8):
        area = _area(0.5, s=0, r=-1, rho=BALANCED, m1=m1, m2=2)
        yield Number(f"area at m1 = {m1:g}", "3.6652", area)
    yield Number("π m2/ρ", "3.6652", math.pi * 2 / BALANCED)


def _area(d_ap: float, **hyper: float) -> float:
    loss = losses.create("distance_sensitive", **hyper)
    return active_region(loss, (0.0, 0.0), (d_ap, 0.0)).area


# ---- margins


def _enclosure() -> Iterable[Number]:
    for m_ranking, stated in ((0.1, "-2.7008"), (0.01, "-3.0759")):
        yield Number(
            f"smallest m1 for m_ranking = {m_ranking}", stated, margin_enclosing(0.5, m_ranking, s=1, r=2, rho=1)
        )


def _stationary() -> Iterable[Number]:
    d, R = 1.0, 1.1

    def a_of(b: float) -> float:
        return b * (1 + d**2 / (4 * (b - R**2)))

    def least(energy: Callable[[float], float]) -> float:
        bounds = (R**2 + 1e-9, 5.0)
        return float(minimize_scalar(energy, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x)

    yield Number("b that minimises a", "1.76", least(a_of))
    yield Number("R² + Rd/2", "1.76", R**2 + R * d / 2)
    yield Number("b that minimises a b", "1.5414", least(lambda b: b * a_of(b)))


def _squared_axes() -> Iterable[Number]:
    true = margin_for_ellipse(1, 0.1, 0, BALANCED)
    # r_major enters as 2 rho r_major - d; the printed quarter under the root halves r_major
    yield Number("margin, with the quarter", "1.8190", (true + 1) / 2 - 1)
    yield Number("margin, without", "4.6381", true)


def _smallest_ellipse() -> Iterable[Number]:
    free, confocal = margin_for_ellipse(1, 0.1, 0, BALANCED), margin_enclosing(1, 0.1, 0, 0, BALANCED)
    for name, margin, axis, stated in (("thesis", free, "1.6444", "4.6381"), ("smallest", confocal, "1.6", "4.4857")):
        yield Number(f"r_major, {name}", axis, (margin + 1) / (2 * BALANCED))
        yield Number(f"m1, {name}", stated, margin)


CHECKS: Mapping[int, Check] = {
    7: _lifted,
    8: _npairs,
    14: _ranking_radius,
    15: _angular_edge,
    17: _squared_alpha,
    21: _energies,
    24: _exponents,
    25: _two_symbols,
    26: _above_the_window,
    27: _equilateral,
    28: _panels,
    29: _hole,
    30: _rotations,
    32: _enclosure,
    34: _stationary,
    35: _squared_axes,
    36: _smallest_ellipse,
}
