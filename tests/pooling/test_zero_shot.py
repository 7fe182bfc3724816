"""Zero-shot prediction loss against golden/losses.json, and optimality of its ridge fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore.pooling import ZeroShotPrediction, mixed, ridge

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())["zero_shot"]


def wave(function, a, b, c, d, rows, columns) -> torch.Tensor:
    r, q = torch.meshgrid(torch.arange(rows).double(), torch.arange(columns).double(), indexing="ij")
    return function(a + b * r + c * q + d * r * q)


SHARES = (1.5 * wave(torch.sin, 0.3, 0.9, 1.1, 0.2, 6, 12)).softmax(0).T
EMBEDDINGS = wave(torch.cos, 0.2, 1.1, 0.6, 0.4, 4, 4).T
LABELS = torch.tensor(GOLDEN["labels"])


def test_the_ridge_fit_is_the_golden_one_and_optimal_whichever_matrix_is_inverted():
    first = torch.isin(LABELS, torch.tensor(GOLDEN["first_half_classes"]))
    A = ridge(SHARES[first], EMBEDDINGS[LABELS[first]], GOLDEN["epsilon"])
    np.testing.assert_allclose(A, GOLDEN["A_first"], rtol=1e-9)
    for shares in (SHARES, SHARES[:4]):
        targets = EMBEDDINGS[LABELS[: len(shares)]]
        A = ridge(shares, targets, 0.05).requires_grad_()
        objective = (shares @ A.mT - targets).square().sum() + 0.05 * A.square().sum()
        (gradient,) = torch.autograd.grad(objective, A)
        assert gradient.abs().max() < 1e-12


@pytest.mark.parametrize("case", GOLDEN["losses"], ids=lambda c: f"scale={c['scale']}")
def test_the_loss(case):
    loss = ZeroShotPrediction(4, 4, epsilon=GOLDEN["epsilon"], scale=case["scale"]).double()
    loss.embeddings.data = EMBEDDINGS.clone()
    value = loss(SHARES, LABELS)
    assert value.item() == pytest.approx(case["value"], rel=1e-9)
    # mean of both halves, not their sum
    assert value.item() / 2 == pytest.approx(case["value_mean_convention"], rel=1e-9)
    shares = SHARES.clone().requires_grad_()
    gradients = torch.autograd.grad(loss(shares, LABELS), (shares, loss.embeddings))
    for gradient, key in zip(gradients, ("grad_Z", "grad_U"), strict=True):
        assert gradient.norm().item() == pytest.approx(case[key]["norm"], rel=1e-9)
        i, d = (torch.arange(float(n), dtype=torch.float64) for n in gradient.mT.shape)
        probe = torch.cos(0.3 * i[:, None] - 0.8 * d + 0.2)
        assert (gradient.mT * probe).sum().item() == pytest.approx(case[key]["dot"], rel=1e-8)
    shuffled = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    assert loss(SHARES[shuffled], LABELS[shuffled]).item() == pytest.approx(value.item(), rel=1e-12)


def test_mixing():
    case = GOLDEN["mixed"]
    zero_shot = next(c["value"] for c in GOLDEN["losses"] if abs(0.9 * 2 + 0.1 * c["value"] - case["value"]) < 1e-6)
    assert mixed(torch.tensor(case["dml"]), torch.tensor(zero_shot), case["lam"]).item() == pytest.approx(case["value"])


def test_gradients_reach_shares_and_embeddings():
    loss, shares = ZeroShotPrediction(4, 4).double(), SHARES.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s, e: torch.func.functional_call(loss, {"embeddings": e}, (s, LABELS)),
        (shares, EMBEDDINGS.clone().requires_grad_()),
    )


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least two classes"):
        ZeroShotPrediction(4, 4)(torch.zeros(3, 6), torch.zeros(3, dtype=torch.int64))
