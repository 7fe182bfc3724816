"""Generalized sum pooling against golden/gsp.json, and its initial phase as average pooling."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore.geometry import k_center
from dmlcore.pooling import (
    GeneralizedSumPooling,
    clip_to_unit_ball,
    pooling_weights,
    prototype_costs,
    selection,
    transport,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "gsp.json").read_text())


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("case", GOLDEN["end_to_end"], ids=lambda c: c["name"])
def test_end_to_end_with_gradients(case):
    features, prototypes = (tensor(case[k]).requires_grad_() for k in ("features", "prototypes"))
    cost = prototype_costs(features, prototypes)
    np.testing.assert_allclose(cost.detach(), case["cost"], rtol=1e-10)
    rho, pi = transport(cost, case["mu"], case["eps"])
    weights, z = pooling_weights(rho, case["mu"]), pi.sum(-1) / case["mu"]
    pooled = weights @ features
    np.testing.assert_allclose(weights.detach(), case["weights"], rtol=1e-9)
    np.testing.assert_allclose(pooled.detach(), case["pooled"], rtol=1e-9)
    np.testing.assert_allclose(z.detach(), case["z"], rtol=1e-9)
    loss = (tensor(case["r"]) * pooled).sum() + (tensor(case["s"]) * z).sum()
    assert loss.item() == pytest.approx(case["L"], rel=1e-9)
    gradients = torch.autograd.grad(loss, (features, prototypes))
    np.testing.assert_allclose(gradients[0], case["dL_dfeatures"], rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(gradients[1], case["dL_dprototypes"], rtol=1e-8, atol=1e-11)


def toy_red_blue() -> torch.Tensor:
    """Return an image (3, 10, 10): green ground, a red block top left and a blue one bottom right, both graded."""
    image = torch.zeros(10, 10, 3, dtype=torch.float64)
    image[..., 1] = 1
    for k in range(25):
        r, q = divmod(k, 5)
        s = 0.3 * k / 24
        image[r, q] = tensor([1 - s, s / 2, s / 2])
        image[r + 5, q + 5] = tensor([s / 2, s / 2, 1 - s])
    return image.permute(2, 0, 1)


@pytest.mark.parametrize("case", GOLDEN["toy_red_blue"]["cases"], ids=lambda c: f"mu={c['mu']}-eps={c['eps']}")
def test_the_red_and_blue_toy(case):
    if case["eps"] == "lp":
        cost = prototype_costs(toy_red_blue().flatten(1).T, tensor(GOLDEN["toy_red_blue"]["prototypes"]))
        np.testing.assert_allclose(selection(cost, case["mu"]).reshape(10, 10), case["weights"], atol=1e-12)
        return
    layer = GeneralizedSumPooling(3, 2, case["mu"], case["eps"], memory=0).double()
    layer.prototypes.data = tensor(GOLDEN["toy_red_blue"]["prototypes"])
    layer(toy_red_blue()[None])
    np.testing.assert_allclose(layer.weights.detach().reshape(10, 10), case["weights"], rtol=1e-8, atol=1e-12)


def test_it_averages_until_its_memory_is_full_and_then_starts_from_a_k_centre():
    torch.manual_seed(0)
    layer, batches = GeneralizedSumPooling(4, 3, memory=20), [torch.randn(8, 4, 2, 3) for _ in range(3)]
    for batch in batches[:2]:
        torch.testing.assert_close(layer(batch), batch.mean((2, 3)))
    layer.eval()
    # the memory is not filled in evaluation mode
    torch.testing.assert_close(layer(batches[2]), batches[2].mean((2, 3)))
    layer.train()
    layer(batches[2])
    assert layer.ready
    pooled = clip_to_unit_ball(torch.cat([b.mean((2, 3)) for b in batches]))[:20]
    chosen = pooled[3:][torch.as_tensor(k_center(pooled[3:], pooled[:3], 3))]
    torch.testing.assert_close(layer.prototypes.data, chosen)


def test_weights_and_shares_sum_to_one_for_any_size_and_all_mass_is_the_average():
    layer = GeneralizedSumPooling(5, 4, memory=0)
    for size in ((1, 1), (7, 7), (3, 9)):
        features = torch.randn(2, 5, *size)
        assert layer(features).shape == (2, 5)
        torch.testing.assert_close(layer.weights.sum(1), torch.ones(2))
        torch.testing.assert_close(layer.shares.sum(1), torch.ones(2))
    whole = GeneralizedSumPooling(5, 4, mu=1.0, memory=0)
    torch.testing.assert_close(whole(features), features.mean((2, 3)))


def test_a_checkpoint_carries_the_prototypes_and_the_memory():
    torch.manual_seed(1)
    layer = GeneralizedSumPooling(4, 3, memory=8)
    layer(torch.randn(8, 4, 2, 2))
    other = GeneralizedSumPooling(4, 3, memory=8)
    other.load_state_dict(layer.state_dict())
    features = torch.randn(2, 4, 3, 3)
    torch.testing.assert_close(other(features), layer(features))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"channels": 0}, "channels must be an integer of at least 1"),
        ({"channels": 4, "prototypes": 8, "memory": 10}, "memory must hold at least 2 x prototypes = 16"),
        ({"channels": 4, "mu": 1.5}, "gsp: mu must be 1 at most"),
        ({"channels": 4, "epsilon": -1}, "gsp: epsilon must be greater than 0"),
    ],
)
def test_bad_settings_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        GeneralizedSumPooling(**arguments)


def test_bad_features_are_named():
    with pytest.raises(ValueError, match=r"features must have shape \(B, 4, H, W\), got \(2, 3, 5, 5\)"):
        GeneralizedSumPooling(4)(torch.zeros(2, 3, 5, 5))


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0])
def test_an_exported_graph_computes_the_same_without_branches_on_values(mu, monkeypatch):
    pool = GeneralizedSumPooling(12, 6, mu, memory=0).eval()
    features = torch.randn(3, 12, 5, 5, generator=torch.Generator().manual_seed(0))
    features[0, :, 2, 2] = clip_to_unit_ball(pool.prototypes)[1].detach()  # a distance of 0
    with torch.inference_mode():
        wanted = pool(features)
        monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
        assert torch.allclose(pool(features), wanted, atol=1e-6)
