"""Properties of a triplet loss on normalised embeddings, computed over triplets of unit vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from scipy.optimize import brentq
from torch import Tensor

from dmlcore.geometry import Triplet
from dmlcore.geometry.extremes import Extreme, extremes, residuals
from dmlcore.geometry.sphere import random_triplets
from dmlcore.losses import formula as entry_of
from dmlcore.losses.engine.formula import TripletFormula
from dmlcore.losses.engine.triplet_loss import TripletLoss

WIDE = 128  # dimension in which random triplets are drawn in addition to 3; the embedding dimension of the thesis
LARGEST_MARGIN = 1000.0


@dataclass(frozen=True)
class Identity:
    """Simpler form, in LaTeX, of a loss formula on the unit sphere, with the largest deviation from that form.

    The deviation is measured over random triplets of unit vectors.
    """

    text: str
    deviation: float


@dataclass(frozen=True)
class Normalised:
    """Properties of a loss on the unit sphere in any space of at least 3 dimensions.

    The core is the value of the loss formula, without margin and clamp. `margin_off` is the smallest margin with which
    no triplet is ever clamped to 0; it is inf if no margin has this effect and None if the loss has no margin.
    """

    least: Extreme  # minimum of the core
    greatest: Extreme
    margin_name: str | None
    margin_off: float | None
    residual: float  # largest gradient component that lies along no edge of the triplet, relative to the gradient norm
    residual_tangential: float  # same as `residual` after projection onto the tangent space of the sphere
    radial_share: (
        # fraction of the squared gradient norm that is radial, which normalisation removes; mean over random triplets
        # in 3-D
        float
    )
    identity: Identity | None

    @property
    def clamp_is_off(self) -> bool:
        """True if the core is positive for every triplet, so that the clamp at 0 never acts."""
        return self.least.value > 0


def normalisation(loss: TripletLoss) -> Normalised:
    """Return the properties of `loss` on the unit sphere. The result is cached by loss name and hyper-parameters."""
    return _normalisation(loss.formula.name, tuple(loss.hyper.items()))


@lru_cache(maxsize=512)
def _extremes(name: str, own: tuple[tuple[str, float | str], ...]) -> tuple[Extreme, Extreme]:
    return extremes(partial(entry_of(name).core, **dict(own)))


@lru_cache(maxsize=512)
def _normalisation(name: str, hyper: tuple[tuple[str, float | str], ...]) -> Normalised:
    formula, values = entry_of(name), dict(hyper)
    own = {k: values[k] for k in formula.own}
    energy = partial(formula.core, **own)
    least, greatest = _extremes(name, tuple(own.items()))
    near, wide = residuals(energy, 3), residuals(energy, WIDE)
    return Normalised(
        least=least,
        greatest=greatest,
        margin_name=formula.margin.name if formula.margin else "m" if "m" in formula.own else None,
        margin_off=_margin_off(formula, own, least.value),
        residual=max(near.whole, wide.whole),
        residual_tangential=max(near.tangential, wide.tangential),
        radial_share=near.radial,
        identity=_identity(formula, own),
    )


def _margin_off(formula: TripletFormula, own: dict[str, float | str], least: float) -> float | None:
    if formula.margin:
        return -least
    if "m" not in own:
        return None

    def least_at(m: float) -> float:  # least energy at margin m, for a loss whose formula contains the margin
        return _extremes(formula.name, tuple((own | {"m": m}).items()))[0].value

    low = 1e-3
    if least_at(low) >= 0 or least_at(LARGEST_MARGIN) < 0:
        return low if least_at(low) >= 0 else math.inf
    return float(brentq(least_at, low, LARGEST_MARGIN, xtol=1e-10))


# Function of the triplet and the inner products a.p and a.n that returns the simpler form of a loss.
Form = Callable[[Triplet, Tensor, Tensor], Tensor]

_FORMS: dict[str, tuple[str, Form]] = {
    "facenet": (r"2\,(a^\top n-a^\top p)", lambda t, ap, an: 2 * (an - ap)),
    "facenet_mined": (r"2\,(a^\top n-a^\top p)", lambda t, ap, an: 2 * (an - ap)),
    "npairs": (
        r"\log\!\left(1+e^{(d_{ap}^2-d_{an}^2)/2}\right)",
        lambda t, ap, an: torch.nn.functional.softplus((t.d_ap**2 - t.d_an**2) / 2),
    ),
}


def _identity(formula: TripletFormula, own: dict[str, float | str]) -> Identity | None:
    """Return the simpler form that the loss formula takes for vectors of norm 1, or None if there is none."""
    text, form = _FORMS.get(formula.name, ("", None))
    if formula.name == "moving":
        rho = float(own["rho"])
        text = rf"d_{{ap}}^2-d_{{an}}^2-{rho:.4g}\,\frac{{d_{{ap}}}}{{2\,d_{{an}}}}"

        def form(t: Triplet, ap: Tensor, an: Tensor) -> Tensor:
            return t.d_ap**2 - t.d_an**2 - rho * t.d_ap / (2 * t.d_an)

    elif formula.name == "location_aware":
        entangle = entry_of("entangle").core
        a, p, n = random_triplets(1, 3, seed=1)
        t = Triplet.of_points(a, p, n)
        # Difference for the first triplet; the deviation computed below shows if it is the same for all triplets.
        shift = float(formula.core(t, **own) - entangle(t))
        text = rf"E_{{\mathrm{{entangled}}}}+{shift:.4g}"

        def form(t: Triplet, ap: Tensor, an: Tensor) -> Tensor:
            return entangle(t) + shift

    if form is None:
        return None
    worst = 0.0
    for dimension in (3, WIDE):
        a, p, n = random_triplets(512, dimension)
        t = Triplet.of_points(a, p, n)
        expected = form(t, (a * p).sum(-1), (a * n).sum(-1))
        worst = max(worst, float((formula.core(t, **own) - expected).abs().max()))
    return Identity(text, worst)
