"""Step-by-step derivations of margins and rho in LaTeX: each formula in symbols, then with numbers inserted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dmlcore.geometry.margins import balanced_rho, margin_enclosing, margin_for_ellipse


@dataclass(frozen=True)
class Worked:
    """A value with its derivation in LaTeX.

    `symbols[k]` is a formula; `numbers[k]` is the same formula with numbers inserted.
    """

    value: float
    symbols: tuple[str, ...]
    numbers: tuple[str, ...]


def explain_margin_for_ellipse(d: float, m_ranking: float, s: float, rho: float) -> Worked:
    """Return `margin_for_ellipse` with its derivation; arguments and errors are those of `margin_for_ellipse`."""
    value = margin_for_ellipse(d, m_ranking, s, rho)
    R = d + m_ranking
    b = R**2 + (d * math.sqrt(d**2 + 32 * R**2) - d**2) / 16
    a = b * (1 + d**2 / (4 * (b - R**2)))
    major = math.sqrt(max(a, b + d**2 / 4))
    pull, pull_number = _pull(s, d)
    n = number
    return Worked(
        value,
        (
            r"R=d_{ap}+m",
            r"b=R^2+\tfrac{1}{16}\left(d_{ap}\sqrt{d_{ap}^2+32R^2}-d_{ap}^2\right)",
            r"a=b\left(1+\frac{d_{ap}^2}{4(b-R^2)}\right)",
            r"A=\sqrt{\max\left(a,\,b+\tfrac14 d_{ap}^2\right)}",
            rf"m_1=2\rho A-{pull}",
        ),
        (
            _sum(d, m_ranking),
            rf"b={n(R)}^2+\tfrac{{1}}{{16}}\left({n(d)}\cdot\sqrt{{{n(d)}^2+32\cdot {n(R)}^2}}-{n(d)}^2\right)={n(b)}",
            rf"a={n(b)}\left(1+\frac{{{n(d)}^2}}{{4({n(b)}-{n(R)}^2)}}\right)={n(a)}",
            rf"A=\sqrt{{\max\left({n(a)},\,{n(b)}+\tfrac14\cdot {n(d)}^2\right)}}={n(major)}",
            rf"m_1=2\cdot {n(rho)}\cdot {n(major)}-{pull_number}={n(value)}",
        ),
    )


def explain_margin_enclosing(d: float, m_ranking: float, s: float, r: float, rho: float) -> Worked:
    """Return `margin_enclosing` with its derivation; arguments and errors are those of `margin_enclosing`."""
    value = margin_enclosing(d, m_ranking, s, r, rho)
    R, q, n = d + m_ranking, 1 - r, number
    pull, pull_number = _pull(s, d)
    if abs(q) < 1e-9:
        push = r"\rho\left(\log\,R+\log(R+d_{ap})\right)"
        push_number = rf"{n(rho)}\left(\log({n(R)})+\log({n(R + d)})\right)"
    else:
        push = r"\frac{\rho}{1-r}\left(R^{1-r}+(R+d_{ap})^{1-r}\right)"
        push_number = rf"\frac{{{n(rho)}}}{{{n(q)}}}\left({n(R)}^{{{n(q)}}}+{n(R + d)}^{{{n(q)}}}\right)"
    return Worked(
        value,
        (r"R=d_{ap}+m", rf"m_1={push}-{pull}"),
        (_sum(d, m_ranking), rf"m_1={push_number}-{pull_number}={n(value)}"),
    )


def explain_balanced_rho(B: int, C: int) -> Worked:
    """Return `balanced_rho` with its derivation; arguments and errors are those of `balanced_rho`."""
    value = balanced_rho(B, C)
    K = B // C
    return Worked(
        value,
        (r"K=\frac{B}{C}", r"\rho=\frac{B-K}{2(K-1)}"),
        (rf"K=\frac{{{B}}}{{{C}}}={K}", rf"\rho=\frac{{{B}-{K}}}{{2({K}-1)}}={number(value)}"),
    )


def _pull(s: float, d: float) -> tuple[str, str]:
    """Return the pull energy of the anchor-positive pair in LaTeX, first in symbols, then with numbers inserted."""
    q, n = s + 1, number
    if abs(q) < 1e-9:
        return r"\log\,d_{ap}", rf"\log({n(d)})"
    return r"\frac{d_{ap}^{s+1}}{s+1}", rf"\frac{{{n(d)}^{{{n(q)}}}}}{{{n(q)}}}"


def _sum(d: float, m_ranking: float) -> str:
    sign = "-" if m_ranking < 0 else "+"
    return f"R={number(d)}{sign}{number(abs(m_ranking))}={number(d + m_ranking)}"


def number(x: float, digits: int = 6) -> str:
    """Format a number in LaTeX with `digits` significant digits."""
    mantissa, _, exponent = f"{x:.{digits}g}".partition("e")
    return rf"({mantissa}\cdot 10^{{{int(exponent)}}})" if exponent else mantissa
