"""Sums over sorted negatives against sums over single triplets, including counts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dmlcore import losses
from dmlcore.losses.engine import table

SEPARABLE = tuple(name for name in losses.names() if losses.formula(name).separable)
Found = tuple[Tensor, Tensor, table.Counts]


def compute_both(
    loss: losses.TripletLoss, points: Tensor, labels: Tensor, monkeypatch: pytest.MonkeyPatch
) -> list[Found]:
    """Return value, gradient and counts from all triplets, then from sorted negatives."""
    found = []
    for fewest in ((10**9, 0), (2, 0)):
        monkeypatch.setattr(table, "RANKED", fewest)
        leaf = points.clone().requires_grad_()
        value = loss(leaf, labels)
        found.append((value.detach(), torch.autograd.grad(value, leaf)[0], loss.counts))
    return found


@pytest.mark.parametrize("kind", ["random", "many ties", "one place", "tiny", "large"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_sorted_negatives_give_what_all_triplets_give(
    dtype: torch.dtype, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test each loss with each reduction on one of the sizes."""
    random = torch.Generator().manual_seed(len(kind))
    settings = [(name, {}) for name in SEPARABLE] + [("ranking", {"m": 0.0}), ("ranking", {"m": 1.0, "m2": 0.7})]
    for turn, (size, classes) in enumerate(((2, 1), (7, 2), (23, 4), (40, 3))):
        labels = torch.randint(classes, (size,), generator=random)
        points = torch.randn(size, 4, generator=random, dtype=torch.float64)
        if kind == "many ties":
            points = torch.randint(3, (size, 2), generator=random).double()
        points = points * {"one place": 0.0, "tiny": 1e-20, "large": 1e4}.get(kind, 1.0)
        for place, (name, hyper) in enumerate(settings, turn + (dtype == torch.float32)):
            loss = losses.create(name, reduction=losses.REDUCTIONS[place % len(losses.REDUCTIONS)], **hyper)
            listed, ranked = compute_both(loss, points.to(dtype), labels, monkeypatch)
            assert ranked[2] == listed[2]
            close = 1e-5 if dtype == torch.float32 else 1e-11
            torch.testing.assert_close(ranked[0], listed[0], rtol=close, atol=close)
            scale = max(1e-3, float(listed[1].abs().max()))
            torch.testing.assert_close(ranked[1] / scale, listed[1] / scale, rtol=close, atol=close)


def test_a_batch_of_few_classes_is_sorted_and_one_of_many_is_listed() -> None:
    for per_class, ranked in ((128, True), (16, True), (4, False)):
        blocks = list(table.valid_blocks(torch.arange(256) // per_class, separable=True))
        assert {block.ranked for block in blocks} == {ranked}
    assert not any(block.ranked for block in table.valid_blocks(torch.arange(256) // 64))
