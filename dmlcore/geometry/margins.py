"""Margins of the distance-sensitive loss, and the ratio rho that balances its pull and push.

With these margins the distance-sensitive loss is active wherever the ranking loss is.
"""

from __future__ import annotations

import math
from numbers import Integral

RANKING_MARGIN = 0.1  # margin of the ranking loss whose active region `margin_from_data` covers


def margin_for_ellipse(d: float, m_ranking: float, s: float, rho: float) -> float:
    """Return the margin m1 at which the active region of the r = 0 loss, an ellipse, contains both ranking discs.

    The discs are the active regions of the ranking loss around the anchor and around the positive, of radius R = d +
    m_ranking. The ellipse has its foci at the same two points; a (Eq. B.4) and b (Eq. B.5) are squared semi-axes.

    Args:
        d: Distance d_ap > 0 between anchor and positive.
        m_ranking: Margin of the ranking loss, with d + m_ranking > 0.
        s: Exponent of the pull.
        rho: Ratio of push to pull, > 0.

    Returns:
        The margin m1.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> from dmlcore import geometry
        >>> round(geometry.margin_for_ellipse(1.0, 0.0, 0.0, 1.0), 4)
        2.0917

    Reference:
        Karaman 2021, App. B.
    """
    R = _ranking_radius(d, m_ranking, rho)
    b = R**2 + (d * math.sqrt(d**2 + 32 * R**2) - d**2) / 16
    a = b * (1 + d**2 / (4 * (b - R**2)))
    r_major = math.sqrt(max(a, b + d**2 / 4))
    return 2 * rho * r_major - _potential(d, s + 1)


def margin_enclosing(d: float, m_ranking: float, s: float, r: float, rho: float) -> float:
    """Return the smallest margin m1 whose active region contains both ranking discs, for any push exponent r.

    The discs are the active regions of the ranking loss around the anchor and around the positive, of radius R = d +
    m_ranking. The outermost point of the discs lies on the line through anchor and positive, at distances R and R + d
    from them.

    Args:
        d: Distance d_ap > 0 between anchor and positive.
        m_ranking: Margin of the ranking loss, with d + m_ranking > 0.
        s: Exponent of the pull.
        r: Exponent of the push.
        rho: Ratio of push to pull, > 0.

    Returns:
        The margin m1.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> from dmlcore import geometry
        >>> geometry.margin_enclosing(1.0, 0.0, 0.0, 0.0, 1.0)  # R = 1, so m1 = 1 + 2 - 1
        2.0
        >>> geometry.margin_enclosing(0.0, 0.0, 0.0, 0.0, 1.0)
        Traceback (most recent call last):
        ValueError: d must be positive and finite, got 0.0

    Reference:
        Exact form of Karaman 2021, App. B.
    """
    R = _ranking_radius(d, m_ranking, rho)
    return rho * (_potential(R, 1 - r) + _potential(R + d, 1 - r)) - _potential(d, s + 1)


def margin_from_data(d: float, s: float, r: float, rho: float) -> float:
    """Return the margin m1 at which the distance-sensitive loss is active wherever the ranking loss with margin 0.1 is.

    Args:
        d: Mean distance within classes, d > 0.
        s: Exponent of the pull.
        r: Exponent of the push; at r = 0 the result is that of `margin_for_ellipse`, else that of `margin_enclosing`.
        rho: Ratio of push to pull, > 0.

    Returns:
        The margin m1.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> from dmlcore import geometry
        >>> round(geometry.margin_from_data(1.0, 0.0, 0.0, 12 / 7), 2)
        4.64

    Reference:
        Karaman 2021, Sec. 3.2.3 and App. B, which takes d as the mean distance within classes.
    """
    if abs(r) < 1e-9:
        return margin_for_ellipse(d, RANKING_MARGIN, s, rho)
    return margin_enclosing(d, RANKING_MARGIN, s, r, rho)


def balanced_rho(B: int, C: int) -> float:
    """Return the rho that gives pull and push the same total weight per pair, in a batch with classes of equal size.

    With B samples, C classes and K = B/C, rho = (B - K) / (2 (K - 1)). Each same-class pair is the a-p edge of 2 (B -
    K) triplets. Each different-class pair is the a-n edge of 2 (K - 1) triplets and the p-n edge of equally many.

    Raises:
        ValueError: If an argument is out of range; the message suggests a valid value.

    Reference:
        Karaman 2021, Eq. 3.19.
    """
    K = _class_size(B, C)
    return (B - K) / (2 * (K - 1))


def _class_size(B: int, C: int) -> int:
    for name, value in (("B", B), ("C", C)):
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ValueError(f"{name} must be a whole number, got {value!r}")
    if C < 2:
        raise ValueError(f"C must be at least 2, or there is no negative; got {C}")
    if B % C:
        below = max(B // C, 2) * C
        raise ValueError(f"B must be a multiple of C = {C}, as classes have equal size; got {B}, try {below}")
    if B < 2 * C:
        raise ValueError(f"B must be at least 2 C = {2 * C}, or there is no positive; got {B}")
    return int(B // C)


def _ranking_radius(d: float, m_ranking: float, rho: float) -> float:
    for name, value in (("d", d), ("d + m_ranking", d + m_ranking), ("rho", rho)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be positive and finite, got {value}")
    return d + m_ranking


def _potential(d: float, q: float) -> float:
    """Compute the potential P_q(d) = d^q / q, or log d at q = 0, of a scalar (see `triplet.power_potential`)."""
    return math.log(d) if abs(q) < 1e-9 else d**q / q
