"""Contract of the table of optimisers: every entry creates its optimiser and describes it correctly."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.optimisers import OPTIMISERS
from dmlcore.training import optimisers


def first_step(name: str, scale: float) -> tuple[torch.optim.Optimizer, nn.Linear, float]:
    """Make one step with a gradient of this scale; return optimiser, layer and the length of the step."""
    torch.manual_seed(0)
    layer = nn.Linear(8, 4, bias=False)
    before = layer.weight.detach().clone()
    optimiser = optimisers.create(RunSpec().with_overrides([f"optimiser.name={name}"]), layer, nn.Module())
    layer.weight.grad = scale * torch.randn(4, 8)
    optimiser.step()
    return optimiser, layer, float((layer.weight.detach() - before).norm())


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_entry_describes_its_optimiser(name: str) -> None:
    entry = OPTIMISERS[name]
    optimiser, layer, length = first_step(name, 1.0)
    assert type(optimiser).__base__ is getattr(torch.optim, entry.torch_class)
    assert length > 0
    tensors = [value for value in optimiser.state[layer.weight].values() if isinstance(value, torch.Tensor)]
    assert sum(value.numel() for value in tensors if value.ndim) == entry.values_per_parameter * layer.weight.numel()
    _, _, longer = first_step(name, 100.0)
    assert (longer == pytest.approx(length, rel=1e-3)) == entry.scale_free
    assert ("fused" in optimiser.defaults) >= entry.fused


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_of_one_state_keep_the_same_tensors(name: str) -> None:
    keys = lambda other: first_step(other, 1.0)[0].state_dict()["state"][0].keys()  # noqa: E731
    for other, entry in OPTIMISERS.items():
        if entry.state and entry.state == OPTIMISERS[name].state:
            assert keys(other) == keys(name)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_restored_state_continues_bit_for_bit(name: str) -> None:
    optimiser, layer, _ = first_step(name, 1.0)
    weight, state = layer.weight.detach().clone(), copy.deepcopy(optimiser.state_dict())
    again = nn.Linear(8, 4, bias=False)
    again.weight.data.copy_(weight)
    restored = optimisers.create(RunSpec().with_overrides([f"optimiser.name={name}"]), again, nn.Module())
    restored.load_state_dict(state)
    for each, stepper in ((layer, optimiser), (again, restored)):
        each.weight.grad = torch.linspace(-1, 1, 32).view(4, 8)
        stepper.step()
    assert torch.equal(layer.weight, again.weight)
    assert not torch.equal(layer.weight, weight)


def test_an_unknown_optimiser_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SpecError, match="adamw") as caught:
        RunSpec().with_overrides(["optimiser.name=lion"])
    assert all(name in str(caught.value) for name in OPTIMISERS)
