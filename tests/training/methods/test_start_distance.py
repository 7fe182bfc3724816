"""The distance of embeddings from those of the initial network: its gradient, its reference, and forks."""

from pathlib import Path
from typing import Any

import pytest
import torch

from dmlcore.storage import checkpoint
from dmlcore.storage.run_directory import kept_path
from dmlcore.storage.runs import RunStore
from dmlcore.training import loop, methods
from dmlcore.training.forks import fork_spec
from dmlcore.training.methods.start_distance import StartDistance, distance
from tests.training.methods.two_stages import SPEC, make_state
from tests.training.resumed import trained


@pytest.mark.parametrize("loss", ["tuplet", "contrastive", "proxy_nca", "facenet"])
def test_any_loss_is_held_to_the_pretrained_network(loss: str, digits: Any, weights: str) -> None:
    """The gradient is that of the loss and of J_pre, whose reference embeddings are constant, without dropout."""
    overrides = [f"loss.name={loss}", "model.dropout=0"]
    held, free = (make_state(digits, weights, *overrides, f"loss.start_weight={weight}") for weight in (0.3, 0))
    for number in (1, 2):
        loop.step(held, number)
    free.model.load_state_dict(held.model.state_dict())
    free.loss.load_state_dict(held.loss.state_dict())
    inputs = held.batches.make(3, lambda _: None).inputs
    pull = 0.3 * distance(held.model(inputs), methods.get(held, StartDistance).reference(inputs))
    pulls = torch.autograd.grad(pull, list(held.model.parameters()))
    free.model.load_state_dict(held.model.state_dict())  # batch norm has seen another batch
    loss_held, loss_free = loop.step(held, 3), loop.step(free, 3)
    assert loss_held.item() == pytest.approx(loss_free.item() + pull.item(), rel=1e-4)
    assert methods.get(held, StartDistance).last.item() == pytest.approx(pull.item() / 0.3, rel=1e-4)
    assert pull.item() > 0
    for pulled, mine, without in zip(pulls, held.model.parameters(), free.model.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, without.grad + pulled, rtol=1e-3, atol=1e-5)


def test_the_start_stays_what_it_was(digits: Any, weights: str) -> None:
    state = make_state(digits, weights)
    inputs = state.batches.make(1, lambda _: None).inputs
    state.model.eval()
    before = state.model(inputs).detach().clone()
    state.model.train()
    for number in range(1, 4):
        loop.step(state, number)
    assert torch.equal(methods.get(state, StartDistance).reference(inputs), before)
    assert not torch.equal(state.model(inputs), before)
    assert not any(p.requires_grad for p in methods.get(state, StartDistance).reference.parameters())


def test_a_fork_is_held_to_what_its_parent_was_or_else_to_where_it_begins(
    tmp_path: Path, digits: Any, weights: str
) -> None:
    store = RunStore(tmp_path / "runs")
    held = trained(store, SPEC.with_overrides([f"model.start={weights}"]), dataset=digits)
    loose = trained(store, SPEC.with_overrides([f"model.start={weights}", "loss.start_weight=0"]), dataset=digits)
    for parent, of, anew in ((held, "reference", False), (loose, "model", True)):
        fork = trained(store, fork_spec.create(parent, 5, ["loss.start_weight=0.7"]), dataset=digits)
        (row,) = (row for row in fork.metrics()[0] if row["kind"] == "fork")
        assert anew == any("reference network" in words for words in row["anew"])
        expected = checkpoint.select_prefix(checkpoint.read(kept_path(parent.path, 5)).tensors, of)
        mine = checkpoint.select_prefix(checkpoint.load(fork.path).tensors, "reference")
        assert mine.keys() == expected.keys()
        assert all(torch.equal(mine[name], expected[name]) for name in mine)
