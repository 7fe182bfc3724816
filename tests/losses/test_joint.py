"""Angular and N-pair jointly: value and gradient against the printed sums, term by term."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from dmlcore import losses

LABELS = [0, 1, 0, 2, 1, 1, 2, 0]
FIRST_PAIRS = [(0, 2), (1, 4), (3, 6)]  # the first two samples of each class


def points() -> Tensor:
    return torch.randn(8, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64).requires_grad_()


def printed(x: Tensor, gamma: float, rho: float, l2: float) -> Tensor:
    """Compute Can 2018, Eq. 2.25, with loops: Eq. 2.21 and 2.22 over one pair per class, Eq. 2.23 over all triplets."""
    entropy = [-(x[i] @ x[j] - torch.stack([x[i] @ x[k] for _, k in FIRST_PAIRS]).logsumexp(0)) for i, j in FIRST_PAIRS]
    norms = [x[i].norm() for pair in FIRST_PAIRS for i in pair]
    hinges = [
        ((x[i] - x[j]).square().sum() - 4 * math.tan(rho) ** 2 * (x[k] - (x[i] + x[j]) / 2).square().sum()).relu()
        for i, a in enumerate(LABELS)
        for j, b in enumerate(LABELS)
        for k, c in enumerate(LABELS)
        if i != j and a == b and c != a
    ]
    assert 0 < sum(bool(h > 0) for h in hinges) < len(hinges)
    return torch.stack(entropy).mean() + l2 * torch.stack(norms).mean() + gamma * torch.stack(hinges).mean()


@pytest.mark.parametrize(("gamma", "rho", "l2"), [(1.0, 0.6, 0.02), (0.0, 0.6, 0.2), (2.5, 0.4, 0.0)])
def test_value_and_gradient_are_those_of_the_printed_sums(gamma: float, rho: float, l2: float) -> None:
    x, labels = points(), torch.tensor(LABELS)
    loss = losses.for_training("angular_n_pair", classes=3, embedding_dim=5, weight=gamma, rho=rho, l2=l2)
    value, expected = loss(x, labels), printed(x, gamma, rho, l2)
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    torch.testing.assert_close(*(torch.autograd.grad(v, x)[0] for v in (value, expected)), rtol=1e-10, atol=1e-12)


def test_listed_triplets_select_the_terms_of_both_losses() -> None:
    x, labels = points(), torch.tensor(LABELS)
    listed = torch.tensor([0]), torch.tensor([2]), torch.tensor([3])
    loss = losses.for_training("angular_n_pair", classes=3, embedding_dim=5, l2=0.0, rho=0.05)
    angular = losses.create("angular", rho=0.05)(x, labels, listed)
    n_pair = losses.for_training("n_pair", classes=3, embedding_dim=5, form="one", l2=0.0)(x, labels, listed)
    assert loss(x, labels, listed).item() == pytest.approx((angular + n_pair).item(), rel=1e-12)
    assert loss.counts.valid == 1


def test_a_reference_is_refused() -> None:
    x, labels = points(), torch.tensor(LABELS)
    with pytest.raises(ValueError, match="ref_emb: AngularNPair does not support a reference set"):
        losses.for_training("angular_n_pair", classes=3, embedding_dim=5)(x, labels, ref_emb=x, ref_labels=labels)
