"""Triplet counts from listed positive pairs and from sorted negatives must agree."""

from __future__ import annotations

import pytest
import torch

from dmlcore.losses import hinges


@pytest.mark.parametrize(("m", "window"), [(0.1, None), (1.0, None), (1.0, 0.1), (0.1, 0.3), (0.05, 0.1)])
def test_listed_and_sorted_counts_agree(monkeypatch: pytest.MonkeyPatch, m: float, window: float | None) -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        d, positive = torch.rand(20, 26, generator=generator), torch.rand(20, 26, generator=generator) < 0.3
        negative = ~positive & (torch.rand(20, 26, generator=generator) < 0.8)
        d[:, 5] = d[:, 9]  # ties
        monkeypatch.setattr(hinges, "LISTED", 1 << 18)
        listed = hinges.count_triplets(d, positive, negative, m, window)
        monkeypatch.setattr(hinges, "LISTED", -1)
        ranked = hinges.count_triplets(d, positive, negative, m, window)
        assert listed[2] > 0
        assert all(map(torch.equal, listed, ranked))
