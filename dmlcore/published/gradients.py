"""Closed-form gradients and edge forces of the triplet losses, each as LaTeX and as a function of the same formula.

The functions verify the LaTeX: tests compare them with automatic differentiation (tests/published).
Source: Karaman 2021, corrected by its errata.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from dmlcore.geometry.forces import direction as unit
from dmlcore.published.printed_formulas import Gradients, dot, edge

Laws = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class ClosedForm:
    """Closed-form gradients of a loss before the clamp, and the strengths of its forces along the edges.

    Attributes:
        gradient_latex: Formulas of the gradients on a, p, n.
        gradient: Function of (a, p, n, **hyper) that returns three tensors (..., D).
        laws_latex: Formulas of the strengths pull_ap, push_an and push_pn.
        laws: Function of (a, p, n, **hyper) that returns these strengths, three tensors (..., 1).
        where: Definitions of abbreviations in the formulas.
        residual: Formula of the gradient components that lie along no edge.
        remark: Statement that also holds for other hyper-parameters than the defaults.
    """

    gradient_latex: tuple[str, str, str]
    gradient: Callable[..., Gradients]
    laws_latex: tuple[str, str, str]
    laws: Callable[..., Laws]
    where: str = ""
    residual: str = ""
    remark: str = ""


def _along(laws: Callable[..., Laws]) -> Callable[..., Gradients]:
    """Return the gradient function of a loss that depends on distances alone, from its force along each edge."""

    @functools.wraps(laws)
    def gradient(a: Tensor, p: Tensor, n: Tensor, **hyper: float) -> Gradients:
        pull, push_an, push_pn = laws(a, p, n, **hyper)
        ap, an, pn = pull * unit(a, p), push_an * unit(a, n), push_pn * unit(p, n)
        return ap - an, -ap - pn, an + pn

    return gradient


def _hoffer_laws(a: Tensor, p: Tensor, n: Tensor) -> Laws:
    S = torch.sigmoid(edge(a, p) - edge(a, n))
    g = 2 * S**2 * (1 - S)
    return g, g, 0 * g


def _ranking_laws(a: Tensor, p: Tensor, n: Tensor) -> Laws:
    return torch.ones_like(edge(a, p)), torch.ones_like(edge(a, n)), 0 * edge(p, n)


def _facenet(a: Tensor, p: Tensor, n: Tensor) -> Gradients:
    return 2 * (n - p), 2 * (p - a), 2 * (a - n)


def _ratio_laws(a: Tensor, p: Tensor, n: Tensor, *, m: float) -> Laws:
    D = edge(a, p) + m
    return edge(a, n) / D**2, 1 / D, 0 * D


def _angular(a: Tensor, p: Tensor, n: Tensor, *, rho: float) -> Gradients:
    t, w = math.tan(rho) ** 2, a + p - 2 * n
    return 2 * (a - p) - 2 * t * w, 2 * (p - a) - 2 * t * w, 4 * t * w


def _angular_laws(a: Tensor, p: Tensor, n: Tensor, *, rho: float) -> Laws:
    t = math.tan(rho) ** 2
    return 2 * (1 + t) * edge(a, p), 4 * t * edge(a, n), 4 * t * edge(p, n)


def _moving(a: Tensor, p: Tensor, n: Tensor, *, rho: float) -> Gradients:
    d_ap, d_an, k = edge(a, p), edge(a, n), 1 - dot(a, p)[..., None]
    turn, push = k * (a - p) / (d_ap**3 * d_an), k * (a - n) / (d_ap * d_an**3)
    return (
        2 * (n - p) + rho * (p / (d_ap * d_an) + turn + push),
        2 * (p - a) + rho * (a / (d_ap * d_an) - turn),
        2 * (a - n) - rho * push,
    )


def _moving_laws(a: Tensor, p: Tensor, n: Tensor, *, rho: float) -> Laws:
    d_ap, d_an, w0 = edge(a, p), edge(a, n), 1 - (dot(a, a) + dot(p, p))[..., None] / 2
    return (
        2 * d_ap - rho * (1 / (2 * d_an) - w0 / (d_ap**2 * d_an)),
        2 * d_an - rho * (d_ap / (2 * d_an**2) + w0 / (d_ap * d_an**2)),
        0 * d_ap,
    )


def _lifted_laws(a: Tensor, p: Tensor, n: Tensor) -> Laws:
    w = torch.sigmoid(edge(p, n) - edge(a, n))
    return torch.ones_like(w), w, 1 - w


def _npairs(a: Tensor, p: Tensor, n: Tensor) -> Gradients:
    S = torch.sigmoid(dot(a, n) - dot(a, p))[..., None]
    return S * (n - p), -S * a, S * a


def _npairs_laws(a: Tensor, p: Tensor, n: Tensor) -> Laws:
    S = torch.sigmoid(dot(a, n) - dot(a, p))[..., None]
    return S * edge(a, p), S * edge(a, n), 0 * S


def _entangle(a: Tensor, p: Tensor, n: Tensor) -> Gradients:
    return n - p, n - a, a + p - 2 * n


def _location_aware(a: Tensor, p: Tensor, n: Tensor, *, variant: str) -> Gradients:
    return a - p + n, p - a + n, a + p + (n if variant == "printed" else -n)


def _modified_entangle_laws(a: Tensor, p: Tensor, n: Tensor, *, rho: float) -> Laws:
    return torch.ones_like(edge(a, p)), 0 * edge(a, n) + rho, 0 * edge(p, n) + rho


def _distance_sensitive_laws(a: Tensor, p: Tensor, n: Tensor, *, s: float, r: float, rho: float) -> Laws:
    return edge(a, p) ** s, rho * edge(a, n) ** -r, rho * edge(p, n) ** -r


def _edges(a: Tensor, p: Tensor, n: Tensor, **_: str) -> Laws:
    return edge(a, p), edge(a, n), edge(p, n)


_FACENET = ClosedForm(
    (r"2(n-p)", r"2(p-a)", r"2(a-n)"),
    _facenet,
    (r"2\,d_{ap}", r"2\,d_{an}", "0"),
    lambda a, p, n: (2 * edge(a, p), 2 * edge(a, n), 0 * edge(p, n)),
)

CLOSED_FORMS: Mapping[str, ClosedForm] = {
    "hoffer": ClosedForm(
        (r"g\,(u_{ap}-u_{an})", r"-g\,u_{ap}", r"g\,u_{an}"),
        _along(_hoffer_laws),
        ("g", "g", "0"),
        _hoffer_laws,
        r"g=2S^2(1-S),\quad S=\sigma(d_{ap}-d_{an})",
    ),
    "ranking": ClosedForm(
        (r"u_{ap}-u_{an}", r"-u_{ap}", r"u_{an}"),
        _along(_ranking_laws),
        ("1", "1", "0"),
        _ranking_laws,
    ),
    "facenet": _FACENET,
    "facenet_mined": _FACENET,
    "ratio": ClosedForm(
        (r"\tfrac{d_{an}}{D^2}u_{ap}-\tfrac1D u_{an}", r"-\tfrac{d_{an}}{D^2}u_{ap}", r"\tfrac1D u_{an}"),
        _along(_ratio_laws),
        (r"d_{an}/D^2", r"1/D", "0"),
        _ratio_laws,
        r"D=d_{ap}+m",
        remark="As m tends to 0 the core becomes homogeneous of degree 0.",
    ),
    "angular": ClosedForm(
        (r"2(a-p)-2t\,w", r"2(p-a)-2t\,w", r"4t\,w"),
        _angular,
        (r"2(1+t)\,d_{ap}", r"4t\,d_{an}", r"4t\,d_{pn}"),
        _angular_laws,
        r"t=\tan^2\!\rho,\quad w=a+p-2n",
    ),
    "moving": ClosedForm(
        (
            r"2(n-p)+\rho\left[\tfrac{p}{d_{ap}d_{an}}+\tfrac{k(a-p)}{d_{ap}^3d_{an}}+\tfrac{k(a-n)}{d_{ap}d_{an}^3}\right]",
            r"2(p-a)+\rho\left[\tfrac{a}{d_{ap}d_{an}}+\tfrac{k(p-a)}{d_{ap}^3d_{an}}\right]",
            r"2(a-n)+\rho\,\tfrac{k(n-a)}{d_{ap}d_{an}^3}",
        ),
        _moving,
        (
            r"2d_{ap}-\rho\left(\tfrac{1}{2d_{an}}-\tfrac{w_0}{d_{ap}^2d_{an}}\right)",
            r"2d_{an}-\rho\left(\tfrac{d_{ap}}{2d_{an}^2}+\tfrac{w_0}{d_{ap}d_{an}^2}\right)",
            "0",
        ),
        _moving_laws,
        r"k=1-a^\top p,\quad w_0=1-\tfrac12(|a|^2+|p|^2)",
        r"\rho\,a/(d_{ap}d_{an})\text{ on }a,\quad\rho\,p/(d_{ap}d_{an})\text{ on }p",
    ),
    "lifted": ClosedForm(
        (r"u_{ap}-w\,u_{an}", r"-u_{ap}-(1-w)\,u_{pn}", r"w\,u_{an}+(1-w)\,u_{pn}"),
        _along(_lifted_laws),
        ("1", "w", "1-w"),
        _lifted_laws,
        r"w=\sigma(d_{pn}-d_{an})",
    ),
    "npairs": ClosedForm(
        (r"S\,(n-p)", r"-S\,a", r"S\,a"),
        _npairs,
        (r"S\,d_{ap}", r"S\,d_{an}", "0"),
        _npairs_laws,
        r"S=\sigma(a^\top n-a^\top p)",
        r"-S\,p\text{ on }p,\quad S\,n\text{ on }n",
    ),
    "entangle": ClosedForm((r"n-p", r"n-a", r"a+p-2n"), _entangle, (r"d_{ap}", r"d_{an}", r"d_{pn}"), _edges),
    "location_aware": ClosedForm(
        (r"a-p+n", r"p-a+n", r"a+p\pm n"),
        _location_aware,
        (r"d_{ap}", r"d_{an}", r"d_{pn}"),
        _edges,
        r"+n\text{ as printed }(c=3),\quad -n\text{ by the rule }(c=1)",
        r"a\text{ on }a,\quad p\text{ on }p,\quad c\,n\text{ on }n",
    ),
    "modified_entangle": ClosedForm(
        (r"u_{ap}-\rho\,u_{an}", r"-u_{ap}-\rho\,u_{pn}", r"\rho\,(u_{an}+u_{pn})"),
        _along(_modified_entangle_laws),
        ("1", r"\rho", r"\rho"),
        _modified_entangle_laws,
    ),
    "distance_sensitive": ClosedForm(
        (
            r"d_{ap}^{\,s}\,u_{ap}-\rho\,d_{an}^{-r}u_{an}",
            r"-d_{ap}^{\,s}\,u_{ap}-\rho\,d_{pn}^{-r}u_{pn}",
            r"\rho\left(d_{an}^{-r}u_{an}+d_{pn}^{-r}u_{pn}\right)",
        ),
        _along(_distance_sensitive_laws),
        (r"d_{ap}^{\,s}", r"\rho/d_{an}^{\,r}", r"\rho/d_{pn}^{\,r}"),
        _distance_sensitive_laws,
        remark="Where s = -r the core is homogeneous of degree s + 1.",
    ),
}
