"""Generated code of the formulas, executed with PyTorch in place of Triton, compared with automatic differentiation."""

from __future__ import annotations

import math
import types
from typing import Any

import pytest
import torch
from torch import Tensor

from dmlcore import losses
from dmlcore.geometry import Triplet
from dmlcore.losses.engine.symbolic import VARIABLES, Untranslatable, energy_source
from tests.members import in_one_case

HYPER: dict[str, list[dict[str, Any]]] = {
    "location_aware": [{}, {"variant": "rule"}],
    "distance_sensitive": [
        {"r": r, "s": s, "m2": m2}
        for r in (-1, 0, 0.35, 1, 2, 4)
        for s in (0, 0.6, -1, -2, -2.6)
        for m2 in (5, math.inf)
    ],
}


def run(source: str, numbers: dict[str, Tensor]) -> list[Tensor]:
    """Execute generated code with PyTorch."""
    where = lambda c, x, y: torch.where(c, *(torch.as_tensor(z, dtype=torch.float64) for z in (x, y)))  # noqa: E731
    names = ("exp", "log", "sqrt", "sigmoid", "abs", "exp2", "log2")
    tl = types.SimpleNamespace(where=where, **{name: getattr(torch, name) for name in names})
    scope: dict[str, Any] = {"tl": tl, "logaddexp": torch.logaddexp, "softplus": lambda x: torch.logaddexp(x, 0 * x)}
    exec(source, scope)
    return [torch.as_tensor(x) for x in scope["energy"](**numbers)]


def differentiate(core: Any, floor: float, numbers: dict[str, Tensor]) -> list[Tensor]:
    """Return the values of a formula and its six derivatives, computed by PyTorch."""
    leaves = {x: number.clone().requires_grad_() for x, number in numbers.items()}
    value = core(Triplet(leaves.__getitem__, lambda vertex: leaves[2 * vertex], floor))
    slopes = torch.autograd.grad(value.sum(), list(leaves.values()), allow_unused=True, materialize_grads=True)
    return [value.detach(), *slopes]


@in_one_case(name=losses.names())
def test_generated_code_has_the_values_and_derivatives_of_the_formula(name: str) -> None:
    draw = torch.Generator().manual_seed(0)
    for hyper in HYPER.get(name, [{}]):
        loss = losses.create(name, **hyper)
        numbers = {x: 2 * torch.rand(1000, generator=draw, dtype=torch.float64) for x in VARIABLES}
        numbers["ap"][:50] = numbers["an"][25:75] = numbers["pn"][60:90] = 0.0
        source, reads = energy_source(loss.formula.core, loss._own, loss.floor)
        expected = differentiate(loss._energy, loss.floor, numbers)
        for x, found, right in zip(("value", *VARIABLES), run(source, numbers), expected, strict=True):
            torch.testing.assert_close(found.double().expand_as(right), right, rtol=1e-10, atol=1e-12, msg=x)
            assert x in reads or x == "value" or not right.any()


FORMULAS = {
    "methods": lambda t: (t.d_ap.exp() * t.d_an.sqrt()).log() + t.d_pn.abs().clamp(min=0.5, max=1.5),
    "functions": lambda t: torch.maximum(t.d_ap, t.d_an) - torch.minimum(t.d_an, t.d_pn) + torch.relu(t.d_ap - 1),
    "powers": lambda t: t.d_ap**3 - t.d_an**-2 + t.d_pn.pow(0.5) + 2 / t.aa + (-t.nn).square() + t.pp**1 * t.pp**0,
    "conditions": lambda t: torch.where(t.d_ap < 1, t.d_an, torch.where(t.d_pn >= t.d_an, 3.0, t.aa)),
}


@pytest.mark.parametrize("core", FORMULAS.values(), ids=FORMULAS)
def test_formulas_of_plug_ins_are_translated(core: Any) -> None:
    numbers = {x: 0.1 + 2 * torch.rand(100, dtype=torch.float64) for x in VARIABLES}
    found = run(energy_source(core, {}, 0.0)[0], numbers)
    for value, right in zip(found, differentiate(core, 0.0, numbers), strict=True):
        torch.testing.assert_close(value.double().expand_as(right), right, rtol=1e-9, atol=1e-9)


@in_one_case(
    core=[
        lambda t: torch.erf(t.d_ap),
        lambda t: t.d_ap.sum(),
        lambda t: t.d_ap if t.d_ap > 0 else t.d_an,
        lambda t: t.d_ap**t.d_an,
        lambda t: t.d_ap * torch.ones(3),
        lambda t: torch.nn.functional.softplus(t.d_ap, beta=2),
        lambda t: 1.0,
    ]
)
def test_formulas_that_cannot_be_translated_are_refused(core: Any) -> None:
    with pytest.raises(Untranslatable):
        energy_source(core, {}, 0.0)
