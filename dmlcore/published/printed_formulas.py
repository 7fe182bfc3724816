"""Formulas of triplet losses as the sources print them: gradients and energies of the errata, compared with autograd.

Each function takes anchor, positive, negative (..., D) and the hyper-parameters of the loss. A gradient is a triple of
tensors (..., D), an energy has shape (...). Do not train with these formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from dmlcore import losses
from dmlcore.geometry import distance
from dmlcore.geometry.forces import direction as unit
from dmlcore.geometry.forces import gradients

Point = tuple[float, float]
POINTS = ("anchor", "positive", "negative")
Gradients = tuple[Tensor, Tensor, Tensor]
Energy = Callable[..., Tensor]


@dataclass(frozen=True)
class Counterexample:
    """An erratum with its printed and its true formula, and a triplet in the plane on which the two differ."""

    loss: str  # name in the catalogue; determines the sliders and the link to the Fields page
    printed: Callable[..., Gradients]
    energy: Energy | None = None  # the printed energy, if one is printed
    truth: Energy | None = None  # the true energy, if it differs from that of the catalogue
    hyper: Mapping[str, float | str] | None = None
    anchor: Point = (0.0, 0.0)
    positive: Point = (1.0, 0.0)
    negative: Point = (0.0, 2.0)
    sliders: tuple[str, ...] = ()  # hyper-parameters that affect this erratum
    sides: tuple[str, str] = ("printed", "true")  # titles of the two figures


@dataclass(frozen=True)
class CounterExampleGradients:
    """Printed and true gradients, shape (..., D) per point, and energies (...), of a counter-example."""

    printed: Gradients
    true: Gradients
    printed_energy: Tensor | None
    true_energy: Tensor

    @property
    def difference(self) -> Tensor:
        """Norm of the difference between printed and true gradients over all three points, shape (...)."""
        squares = ((x - y).square().sum(-1) for x, y in zip(self.printed, self.true, strict=True))
        return torch.stack(torch.broadcast_tensors(*squares)).sum(0).sqrt()


def compare(
    example: Counterexample, a: Tensor, p: Tensor, n: Tensor, hyper: Mapping[str, float | str]
) -> CounterExampleGradients:
    """Evaluate the printed formula and, by automatic differentiation, the true one.

    Gradients are those of the energy before the clamp. Where the printed formula divides by zero it yields infinity or
    NaN, as it would in training.

    Args:
        example: The counter-example.
        a: Anchors, shape (..., D).
        p: Positives, shape (..., D).
        n: Negatives, shape (..., D).
        hyper: Hyper-parameters of the example's loss.
    """
    a, p, n = torch.broadcast_tensors(a, p, n)
    truth = example.truth or _core(example.loss)
    return CounterExampleGradients(
        example.printed(a, p, n, **hyper),
        autograd(truth, a, p, n, **hyper),
        None if example.energy is None else example.energy(a, p, n, **hyper).detach(),
        truth(a, p, n, **hyper).detach(),
    )


def points(example: Counterexample) -> Gradients:
    """Return anchor, positive and negative of an example, shape (2,) each, float64."""
    a, p, n = (torch.tensor(getattr(example, name), dtype=torch.float64) for name in POINTS)
    return a, p, n


def autograd(energy: Energy, a: Tensor, p: Tensor, n: Tensor, **hyper: float | str) -> Gradients:
    """Return the gradients of `energy` with respect to the three points, shape (..., D) each."""
    return gradients(partial(energy, **hyper), a, p, n)


def _core(name: str) -> Energy:
    formula = losses.formula(name)

    def energy(a: Tensor, p: Tensor, n: Tensor, **hyper: float | str) -> Tensor:
        return formula(a, p, n, **{k: v for k, v in hyper.items() if k in formula.own})

    return energy


def _of_energy(energy: Energy) -> Callable[..., Gradients]:
    def gradient(a: Tensor, p: Tensor, n: Tensor, **hyper: float | str) -> Gradients:
        return autograd(energy, a, p, n, **hyper)

    return gradient


# ---- shared terms


def edge(x: Tensor, y: Tensor) -> Tensor:
    """Return |x - y|, shape (..., 1)."""
    return distance(x, y)[..., None]


def dot(x: Tensor, y: Tensor) -> Tensor:
    """Return inner products, shape (...)."""
    return (x * y).sum(-1)


# ---- formulas as printed


def facenet(a: Tensor, p: Tensor, n: Tensor, **_: float | str) -> Gradients:
    """Return the gradients of the FaceNet loss as printed in Karaman 2021, Eq. 2.8."""
    return n - p, p - a, a - n


def ratio(a: Tensor, p: Tensor, n: Tensor, *, m: float, **_: float | str) -> Gradients:
    """Return the gradients of the ratio loss as printed in Karaman 2021, Eq. 2.10."""
    scale = 1 / (edge(a, p) + m)
    return (
        scale * (edge(a, n) * unit(a, p) - edge(a, p) * unit(a, n)),
        -scale * edge(p, n) * unit(a, p),
        scale * unit(a, n),
    )


def hoffer(a: Tensor, p: Tensor, n: Tensor, **_: float | str) -> Gradients:
    """Return the gradients of the original triplet loss (Hoffer) as printed in Karaman 2021, Eq. 2.11."""
    pull, push = edge(a, p).exp(), edge(a, n).exp()
    g = 2 * pull**2 * push / (pull + push) ** 2
    return g * (unit(a, p) - unit(a, n)), -g * unit(a, p), g * unit(a, n)


def angular(a: Tensor, p: Tensor, n: Tensor, *, rho: float, **_: float | str) -> Gradients:
    """Return the gradients of the angular loss as printed in Karaman 2021, Eq. 2.13."""
    t, w = math.tan(rho) ** 2, a + p - 2 * n
    return 2 * (a - p) - 2 * t * w, 2 * (p - a) - 4 * t * w, 4 * t * w


def moving_energy(a: Tensor, p: Tensor, n: Tensor, *, rho: float, **_: float | str) -> Tensor:
    """Return the energy of "moving in the right direction" as printed in Karaman 2021, Eq. 2.14.

    The energy is infinite where d_ap = d_an.
    """
    d_ap, d_an = distance(a, p), distance(a, n)
    return d_ap**2 - d_an**2 - rho * (1 - dot(a, p)) / (d_ap - d_an)


def moving(a: Tensor, p: Tensor, n: Tensor, *, rho: float, **_: float | str) -> Gradients:
    """Return the gradients of "moving in the right direction" as printed in Karaman 2021, Eq. 2.15."""
    d_ap, d_an = edge(a, p), edge(a, n)
    return (
        2 * (n - p) - rho * ((a - p) / (d_ap * d_an) - d_ap * (a - n) / d_an**3),
        2 * (p - a) - rho * (p + a) / (d_ap * d_an),
        2 * (a - n) - rho * (a + n) / d_an**3,
    )


def lifted_energy(a: Tensor, p: Tensor, n: Tensor, *, m: float, **_: float | str) -> Tensor:
    """Return the energy J of the lifted structure loss as printed in Karaman 2021, Eq. 2.17."""
    return distance(a, p) + torch.logaddexp(m - distance(a, n), m - distance(p, n))


def lifted_pair(a: Tensor, p: Tensor, n: Tensor, *, m: float, **_: float | str) -> Tensor:
    """Return the lifted structure loss of Karaman 2021, Eq. 2.16, for a single pair: max(0, J)^2 / 2."""
    return lifted_energy(a, p, n, m=m).clamp(min=0).square() / 2


def npairs_energy(a: Tensor, p: Tensor, n: Tensor, **_: float | str) -> Tensor:
    """Return the energy of the N-pairs loss as printed in Karaman 2021, Eq. 2.19, line 1, with one negative."""
    return torch.nn.functional.softplus(dot(a, p) - dot(a, n))


def npairs(a: Tensor, p: Tensor, n: Tensor, **_: float | str) -> Gradients:
    """Return the gradients of the N-pairs loss as printed in Karaman 2021, Eq. 2.22."""
    S = torch.sigmoid(dot(a, n) - dot(a, p))[..., None]
    return S * (n - p), -S * p, S * a


def constant_forces(a: Tensor, p: Tensor, n: Tensor, **_: float | str) -> Gradients:
    """Return the gradients as printed in Karaman 2021, Eq. 3.5, whose edge forces all have size 1."""
    return unit(a, p) - unit(a, n), -unit(a, p) - unit(p, n), unit(a, n) + unit(p, n)


def frozen_energy(a: Tensor, p: Tensor, n: Tensor, **_: float | str) -> Tensor:
    """Return the energy of Karaman 2021, Eq. 3.7, with c_i = 1/d_i inserted: (d_ap - d_an - d_pn) / 2."""
    return (distance(a, p) - distance(a, n) - distance(p, n)) / 2


def entangle_energy(a: Tensor, p: Tensor, n: Tensor, **_: float | str) -> Tensor:
    """Return the energy of the entangled loss as printed in Karaman 2021, Eq. 3.8, line 1."""
    return dot(a, n) + dot(p, n) - dot(a, p) + dot(n, n)


def location_aware(a: Tensor, p: Tensor, n: Tensor, **_: float | str) -> Gradients:
    """Return the gradients of the location-aware entangled loss as printed in Karaman 2021, Eq. 3.10."""
    return a - p + n, p - a + n, a + p + n


def n_pairs_turned(a: Tensor, p: Tensor, n: Tensor, **_: float | str) -> Tensor:
    """Return the energy as printed in Zabihzadeh et al. 2021, Eq. 5, with the terms of N-pairs and one negative."""
    return -torch.nn.functional.softplus(dot(a, n) - dot(a, p))


COUNTEREXAMPLES: Mapping[int, Counterexample] = {
    1: Counterexample("facenet", facenet),
    2: Counterexample("ratio", ratio, hyper={"m": 0.1}, sliders=("m",)),
    3: Counterexample("hoffer", hoffer),
    4: Counterexample("angular", angular, hyper={"rho": 0.6}, sliders=("rho",)),
    5: Counterexample("moving", _of_energy(moving_energy), moving_energy, hyper={"rho": 0.3}, sliders=("rho",)),
    6: Counterexample("moving", moving, hyper={"rho": 0.3}, sliders=("rho",)),
    7: Counterexample(
        "lifted",
        _of_energy(lifted_energy),
        lifted_energy,
        lifted_pair,
        hyper={"m": 1.0},
        sliders=("m",),
        positive=(2.0, 0.0),
        negative=(0.5, 0.5),
        sides=("Eq. 2.17", "Eq. 2.16, one pair"),
    ),
    # chosen so that a.p = 1 and a.n = 0, as in the text of the erratum
    8: Counterexample(
        "npairs", _of_energy(npairs_energy), npairs_energy, anchor=(1.0, 0.0), positive=(1.0, 0.5), negative=(0.0, 1.0)
    ),
    9: Counterexample("npairs", npairs),
    20: Counterexample(
        "modified_entangle",
        constant_forces,
        truth=frozen_energy,
        hyper={"rho": 1.0},
        negative=(0.0, 1.0),
        sides=("forces of 3.5", "energy of 3.7"),
    ),
    21: Counterexample("entangle", _of_energy(entangle_energy), entangle_energy),
    22: Counterexample("location_aware", location_aware, hyper={"variant": "rule"}),
    85: Counterexample(
        "npairs",
        _of_energy(n_pairs_turned),
        n_pairs_turned,
        anchor=(1.0, 0.0),
        positive=(1.0, 0.5),
        negative=(0.0, 1.0),
    ),
}
