"""Replacements that avoid importing torch's compiler give the same bits as torch itself."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from dmlcore import eager
from dmlcore.losses.engine.distances import weighted_gradients


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.01}),
        (torch.optim.RMSprop, {}),
        (torch.optim.Adam, {"foreach": False}),
        (torch.optim.AdamW, {"fused": True}),
    ],
)
def test_a_plain_optimiser_steps_and_is_restored_as_that_of_torch(kind: Any, options: dict[str, Any]) -> None:
    theirs = nn.Linear(5, 3)
    ours = copy.deepcopy(theirs)
    of_torch = kind(theirs.parameters(), lr=0.1, **options)
    plain = eager.uncompiled(kind)(ours.parameters(), lr=0.1, **options)
    assert isinstance(plain, kind)
    for step in range(4):
        for model, optimiser in ((theirs, of_torch), (ours, plain)):
            optimiser.zero_grad()
            model(torch.arange(10.0).reshape(2, 5) + step).square().sum().backward()
            optimiser.step()
        if step == 1:
            plain.load_state_dict(copy.deepcopy(plain.state_dict()))
    assert torch.equal(theirs.weight, ours.weight)
    assert ours.weight.requires_grad
    assert plain.state_dict().keys() == of_torch.state_dict().keys()


def test_weighted_gradients_are_those_of_torch() -> None:
    x, y = torch.randn(4, 3, requires_grad=True), torch.randn(3, dtype=torch.float64, requires_grad=True)
    outputs, weights = [x.sin() * y, (x * x).sum(1)], [torch.randn(4, 3, dtype=torch.float64), torch.randn(4)]
    expected = torch.autograd.grad(outputs, [x, y], weights, retain_graph=True)
    with torch.no_grad():  # as in the forward pass of an autograd Function
        found = weighted_gradients(outputs, [x, y], weights, retain_graph=True)
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(expected, found, strict=True))
    assert weighted_gradients(outputs[1:], [x, y], weights[1:], allow_unused=True)[1] is None
