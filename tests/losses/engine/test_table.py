"""Blocks of triplets of different sizes: other shapes, the same sums."""

from __future__ import annotations

import pytest
import torch

from dmlcore import losses
from dmlcore.losses.engine import table
from tests.members import in_one_case


@in_one_case(name=losses.names(), reduction=losses.REDUCTIONS)
def test_small_blocks_give_what_large_blocks_give(name: str, reduction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = torch.tensor([3, 1, 1, 3, 0, 3, 1, 2, 0, 3])
    points = torch.randn(10, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = []
    for limit in (table.BLOCK, 20):  # one anchor per block
        loss, x = losses.create(name, reduction=reduction), points.clone().requires_grad_()
        with monkeypatch.context() as here:
            here.setattr(table, "BLOCK", limit)
            value = loss(x, labels)
            gradient = torch.autograd.grad(value, x)[0]
        found.append((value.detach(), gradient, loss.counts))
    torch.testing.assert_close(found[1][:2], found[0][:2], rtol=1e-11, atol=1e-12)
    assert found[1][2] == found[0][2]
    assert found[0][2].valid == 4 * 3 * 6 + 3 * 2 * 7 + 2 * 1 * 8


def test_counts_are_read_once_and_compared_by_value() -> None:
    counts = table.Counts.of(torch.tensor(5), torch.tensor(3), torch.tensor(2))
    assert (counts.valid, counts.nonzero, counts.active) == (5, 3, 2)
    assert counts == table.Counts(torch.tensor([5, 3, 2]))
    assert counts != table.Counts.none()
    assert repr(counts) == "Counts(valid=5, nonzero=3, active=2)"
