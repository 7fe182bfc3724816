"""Cross-batch memory against a golden replay and pytorch-metric-learning, and its state in a checkpoint."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch

from dmlcore import losses
from dmlcore.losses.memory import CrossBatchMemory
from tests.members import in_one_case

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())["memory"]


def golden_batch(step: int) -> torch.Tensor:
    i, d = torch.arange(4, dtype=torch.float64)[:, None], torch.arange(3, dtype=torch.float64)
    return torch.sin(0.5 + 0.9 * step + 1.1 * i + 0.7 * d + 0.4 * i * d)


def contrastive(**hyper: object) -> torch.nn.Module:
    return losses.for_training("contrastive", classes=4, embedding_dim=3, **hyper)


def c1() -> torch.nn.Module:
    """Return the cosine form whose sums are divided by the number of anchors."""
    return contrastive(m_pos=1e-5, m_neg=GOLDEN["margin"], distance="cosine", divisor="anchors")


def test_golden() -> None:
    memory = CrossBatchMemory(c1(), GOLDEN["capacity_batches"], 4, 3, start=0).double()
    labels = torch.tensor(GOLDEN["labels"][0])
    for step in (0, 1):
        memory(golden_batch(step), labels)
        assert not memory.joined
    x = golden_batch(2).requires_grad_()
    value = memory(x, labels)
    value.backward()
    assert memory.joined
    assert value.item() == pytest.approx(GOLDEN["total"], rel=1e-9)
    assert c1()(x, labels).item() == pytest.approx(GOLDEN["batch_loss"], rel=1e-9)
    assert "batches 1 and 2" in GOLDEN["memory_after_last_step"]
    held = {tuple(row) for row in memory.embeddings.tolist()}
    assert held == {tuple(row) for step in (1, 2) for row in golden_batch(step).tolist()}
    assert value.item() - c1()(x, labels).item() == pytest.approx(GOLDEN["memory_loss"], rel=1e-9)
    assert x.grad is not None
    assert x.grad.norm().item() == pytest.approx(GOLDEN["grad_current"]["norm"], rel=1e-8)
    i, d = torch.arange(4.0)[:, None], torch.arange(3.0)
    probe = torch.cos(0.3 * i - 0.8 * d + 0.2).double()
    assert (x.grad * probe).sum().item() == pytest.approx(GOLDEN["grad_current"]["dot"], abs=1e-7)


def batches(count: int, seed: int = 0) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(8, 3, generator=generator, dtype=torch.float64), torch.randint(0, 4, (8,), generator=generator))
        for _ in range(count)
    ]


def test_memory_term_equals_that_of_pml() -> None:
    """PML excludes self matches, too, and counts the first batches equally if the memory is used from the start."""
    from pytorch_metric_learning.losses import ContrastiveLoss
    from pytorch_metric_learning.losses import CrossBatchMemory as Theirs

    theirs = Theirs(ContrastiveLoss(pos_margin=0.3, neg_margin=1.2), 3, memory_size=24)
    memory = CrossBatchMemory(contrastive(m_pos=0.3, m_neg=1.2), 3, 8, 3, start=0).double()
    for step, (x, labels) in enumerate(batches(8), 1):
        one, two = x.clone().requires_grad_(), x.clone().requires_grad_()
        unit, same = torch.nn.functional.normalize(one, dim=1), torch.nn.functional.normalize(two, dim=1)
        ours, past, alone = memory(unit, labels), theirs(same, labels), memory.loss(same, labels)
        if step <= 3:
            assert torch.equal(ours, alone)
            continue
        torch.testing.assert_close(ours, past + alone)
        torch.testing.assert_close(torch.autograd.grad(ours, one)[0], torch.autograd.grad(past + alone, two)[0])


@in_one_case(name=[n for n in losses.batch_names() if getattr(losses.describe(n), "pairs", False)])
def test_no_sample_meets_its_own_copy(name: str) -> None:
    """With room for one batch, the memory is the batch itself: its loss is the loss of the batch."""
    loss = losses.for_training(name, classes=4, embedding_dim=3)
    memory = CrossBatchMemory(loss, 1, 8, 3, start=0).double()
    (x, _), labels = batches(1)[0], torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    for _ in range(2):
        value = memory(x, labels)
    assert value.item() == pytest.approx(2 * loss(x, labels).item(), rel=1e-6)


@pytest.mark.parametrize("stop", [2, 4, 7])
def test_a_resumed_memory_goes_on_exactly(stop: int) -> None:
    memory = CrossBatchMemory(contrastive(m_neg=3.0), 3, 8, 3, start=1).double()
    steps = batches(10)
    for x, labels in steps[:stop]:
        memory(x, labels)
    again = CrossBatchMemory(contrastive(m_neg=3.0), 3, 8, 3, start=1).double()
    again.load_state_dict(copy.deepcopy(memory.state_dict()))
    for x, labels in steps[stop:]:
        assert torch.equal(again(x, labels), memory(x, labels))
        assert again.joined == memory.joined
    assert memory.joined


def test_it_joins_in_when_it_should_and_holds_the_last_batches() -> None:
    memory = CrossBatchMemory(contrastive(), 2, 8, 3, start=3).double()
    seen = batches(7)
    joined = []
    for x, labels in seen:
        memory(x, labels)
        joined.append(memory.joined)
    assert joined == [False] * 5 + [True] * 2  # after 3 + 2 steps
    held = {tuple(row) for row in memory.embeddings.tolist()}
    assert held == {tuple(row) for x, _ in seen[-2:] for row in x.tolist()}
    assert not memory.embeddings.requires_grad


def test_the_gradient_survives_the_next_batch_and_evaluation_changes_nothing() -> None:
    memory = CrossBatchMemory(contrastive(m_neg=3.0), 2, 8, 3, start=0).double()
    (x, labels), (y, other), *_ = batches(2)
    for _ in range(3):
        memory(x, labels)
    leaf = y.clone().requires_grad_()
    value = memory(leaf, other)
    memory(x, labels)
    value.backward()
    before = copy.deepcopy(memory.state_dict())
    memory.eval()(y, other)
    assert all(torch.equal(before[key], now) for key, now in memory.state_dict().items())


def test_refusals_name_the_culprit() -> None:
    with pytest.raises(ValueError, match=r"loss\.memory: a memory needs a loss of pairs, which CrossEntropy is not"):
        CrossBatchMemory(losses.for_training("cross_entropy", classes=2, embedding_dim=3), 2, 4, 3)
    with pytest.raises(ValueError, match="batches >= 1"):
        CrossBatchMemory(contrastive(), 0, 4, 3)
    with pytest.raises(ValueError, match=r"expects batches of \(4, 3\), got embeddings \(5, 3\)"):
        CrossBatchMemory(contrastive(), 2, 4, 3)(torch.zeros(5, 3), torch.zeros(5, dtype=torch.int64))
