"""Margins that make the active region of the distance-sensitive loss enclose the ranking discs."""

from __future__ import annotations

import math


def margin_for_ellipse(d: float, m_ranking: float, s: float, rho: float) -> float:
    """Margin m1 of the r = 0 loss whose confocal ellipse contains the ranking discs (Karaman 2021, App. B).

    d = d_ap > 0, ranking margin m_ranking >= 0, pull exponent s, push/pull ratio rho > 0. The discs of radius
    R = d + m_ranking lie about anchor and positive; b (B.5) and a (B.4) are squared semi-axes.
    """
    R = _ranking_radius(d, m_ranking, rho)
    b = R**2 + (d * math.sqrt(d**2 + 32 * R**2) - d**2) / 16
    a = b * (1 + d**2 / (4 * (b - R**2)))
    r_major = math.sqrt(max(a, b + d**2 / 4))
    return 2 * rho * r_major - _potential(d, s + 1)


def margin_enclosing(d: float, m_ranking: float, s: float, r: float, rho: float) -> float:
    """Smallest margin m1 whose outer boundary contains both ranking discs, any push exponent r.

    d = d_ap > 0, m_ranking >= 0, rho > 0; the extreme point lies on the line through anchor and positive, at
    distances R and R + d from them. Source: exact form of Karaman 2021, App. B.
    """
    R = _ranking_radius(d, m_ranking, rho)
    return rho * (_potential(R, 1 - r) + _potential(R + d, 1 - r)) - _potential(d, s + 1)


def _ranking_radius(d: float, m_ranking: float, rho: float) -> float:
    for name, value in (("d", d), ("d + m_ranking", d + m_ranking), ("rho", rho)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be positive and finite, got {value}")
    return d + m_ranking


def _potential(d: float, q: float) -> float:
    """P_q(d), the scalar of `geometry.distances.power_potential`."""
    return math.log(d) if abs(q) < 1e-9 else d**q / q
