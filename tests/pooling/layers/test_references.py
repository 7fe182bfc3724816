"""Poolings against their formulas written out by position, or calculated manually."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dmlcore import pooling
from dmlcore.pooling import prototype_costs
from tests.members import in_one_case

H, W, C = 3, 4, 5


def features(seed: int = 0) -> torch.Tensor:
    return torch.randn(2, C, H, W, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make_pooling(name: str, **parameters) -> pooling.Pooling:
    torch.default_generator.manual_seed(3)
    layer = pooling.create(name, C, **parameters).double().eval()
    for parameter in layer.parameters():  # biases and parameters initialised to zero must have an effect
        parameter.data += 0.2 * torch.randn_like(parameter)
    return layer


def positions(image: torch.Tensor) -> list[np.ndarray]:
    """Return the local features of one image (C, H, W) as a list."""
    return [image[:, y, x].numpy() for y in range(H) for x in range(W)]


def check(layer: pooling.Pooling, of_one) -> None:
    """Compare a layer with a function of the list of local features of one image."""
    x = features()
    with torch.no_grad():
        expected = np.stack([of_one(positions(image)) for image in x])
        np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-9, atol=1e-12)


def state(layer) -> dict[str, np.ndarray]:
    return {k: v.numpy() for k, v in layer.state_dict().items()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_average_and_maximum_by_hand():
    x = torch.tensor([[[[1.0, 5.0], [3.0, -1.0]], [[-2.0, -4.0], [-2.0, -8.0]]]])
    assert pooling.create("gap", 2)(x).tolist() == [[2.0, -4.0]]
    gmp = pooling.create("gmp", 2)
    assert gmp(x).tolist() == [[5.0, -2.0]]
    assert gmp.weights.tolist() == [[0.25, 0.5, 0.25, 0.0]]  # one channel each; the second pixel is shared by two
    both = pooling.create("gap_gmp", 2)
    assert both(x).tolist() == [[7.0, -6.0]]
    assert both.weights.tolist() == [[0.25, 0.375, 0.25, 0.125]]


def test_the_generalized_mean_is_a_power_mean_between_average_and_maximum():
    def gem(p):
        return lambda local: np.mean([np.maximum(f, 1e-6) ** p for f in local], axis=0) ** (1 / p)

    for p in (1.0, 3.0, 7.5):
        check(pooling.create("gem", C, p=p).double(), gem(p))
    x = features().abs() + 0.1
    torch.testing.assert_close(pooling.create("gem", C, p=1)(x), x.mean((2, 3)))
    torch.testing.assert_close(pooling.create("gem", C, p=2000.0)(x), x.amax((2, 3)), rtol=2e-3, atol=0)
    single = pooling.create("gem", C, p=9.0)(torch.full((1, C, 2, 2), 1e-5))
    torch.testing.assert_close(single, torch.full((1, C), 1e-5))  # (1e-5)^9 is below float32


@pytest.mark.parametrize(("ridge", "channels"), [(1.0, 5), (0.2, 5), (1.0, 40)], ids=["C x C", "ridge", "n x n"])
def test_generalized_max_solves_the_ridge_problem(ridge, channels):
    x = torch.randn(2, channels, H, W, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    pooled = pooling.create("gemax", channels, ridge=ridge)(x)
    for image, g in zip(x, pooled, strict=True):
        F = image.flatten(1)
        torch.testing.assert_close(
            g, F @ torch.linalg.inv(F.mT @ F + ridge * torch.eye(H * W)) @ torch.ones(H * W).double()
        )
    single = pooling.create("gemax", channels, ridge=ridge)(x.float())
    torch.testing.assert_close(single.double(), pooled, rtol=1e-5, atol=1e-6)


def test_generalized_max_survives_features_that_dwarf_the_ridge():
    x = features()
    x[:, :, 1] = x[:, :, 0]  # a singular Gram matrix
    large = (1e7 * x).float().requires_grad_()
    pooled = pooling.create("gemax", C, ridge=0.01)(large)
    pooled.sum().backward()
    assert large.grad.isfinite().all()
    # Without a ridge, f_j . g = 1 in the least squares sense: C = 5 unknowns.
    for image, g in zip(1e7 * x, pooled.double(), strict=True):
        exact = torch.linalg.lstsq(image.flatten(1).mT, torch.ones(H * W, 1).double()).solution[:, 0]
        torch.testing.assert_close(g, exact, rtol=1e-4, atol=0)


def test_crow():
    def crow(local):
        S = np.array([np.maximum(f, 0).sum() for f in local])
        spatial = np.sqrt(S / np.sqrt((S**2).sum()))
        q = np.mean([sigmoid(f) for f in local], axis=0)
        channel = np.log(q.sum() / q)
        return channel * np.mean([a * f for a, f in zip(spatial, local, strict=True)], axis=0)

    layer = make_pooling("crow")
    check(layer, crow)
    S = features().relu().sum(1).flatten(1).sqrt()
    torch.testing.assert_close(layer.weights, S / S.sum(1, keepdim=True))
    assert not layer(-features().abs()).any()
    assert not layer.weights.any()


def test_delf():
    layer = make_pooling("delf", hidden=7)
    s = state(layer)
    W1, b1, w2, b2 = (s[f"attention.{k}"].squeeze() for k in ("0.weight", "0.bias", "2.weight", "2.bias"))

    def score(f):
        return math.log1p(math.exp(w2 @ np.maximum(W1 @ f + b1, 0) + b2))

    check(layer, lambda local: np.mean([score(f) * f for f in local], axis=0))
    scores = np.array([[score(f) for f in positions(image)] for image in features()])
    np.testing.assert_allclose(layer.weights, scores / scores.sum(1, keepdims=True), rtol=1e-9)


def test_cbam():
    layer = make_pooling("cbam", reduction=2)
    s = state(layer)
    mlp = lambda v: s["mlp.2.weight"] @ np.maximum(s["mlp.0.weight"] @ v, 0)  # noqa: E731

    def cbam(local):
        channel = sigmoid(mlp(np.mean(local, axis=0)) + mlp(np.max(local, axis=0)))
        x = np.array(local) * channel
        read = np.zeros((2, H + 2, W + 2))  # a border of zeros
        read[0, 1:-1, 1:-1], read[1, 1:-1, 1:-1] = x.mean(1).reshape(H, W), x.max(1).reshape(H, W)
        kernel = s["spatial.weight"][0]
        at = [(read[:, y : y + 3, q : q + 3] * kernel).sum() for y in range(H) for q in range(W)]
        return np.mean(sigmoid(np.array(at))[:, None] * x, axis=0)

    check(layer, cbam)


def test_gsop_on_its_own_grid():
    """Nothing is resampled at H = W = grid; evaluation mode with running statistics 0 and 1."""
    torch.default_generator.manual_seed(0)
    layer = pooling.create("gsop", C, width=3, grid=2).double().eval()
    x = torch.randn(2, C, 2, 2, dtype=torch.float64)
    s, unit = state(layer), 1 / math.sqrt(1 + 1e-5)  # a normalisation with mean 0, variance 1

    def reduced(f, which):
        return np.maximum((s[f"{which}.0.weight"].squeeze() @ np.maximum(f, 0) + s[f"{which}.0.bias"]) * unit, 0)

    def rows(samples, which):  # samples (d, N)
        covariance = np.cov(samples, bias=True) * unit
        kernels, bias = s[f"{which}.rows.weight"][:, 0], s[f"{which}.rows.bias"]
        return np.array([kernels[k] @ covariance[k // 4] + bias[k] for k in range(len(kernels))])

    for image, pooled in zip(x, layer(x).detach(), strict=True):
        local = image.flatten(1).numpy().T
        by_channel = rows(np.array([reduced(f, "reduce_channels") for f in local]).T, "channel_rows")
        by_position = np.maximum(rows(np.array([reduced(f, "reduce_positions") for f in local]), "position_rows"), 0)
        a = sigmoid(s["channel_gate.weight"] @ by_channel + s["channel_gate.bias"])
        b = sigmoid(s["position_gate.weight"] @ by_position + s["position_gate.bias"])
        expected = np.mean([np.maximum(f * a, np.maximum(f, 0) * b[j]) for j, f in enumerate(local)], axis=0)
        np.testing.assert_allclose(pooled, expected, rtol=1e-9, atol=1e-12)


def test_solar():
    layer = make_pooling("solar", reduction=2, p=2.0)
    s, p = state(layer), layer.gem.p.item()

    def point(f, name):  # convolution and normalisation in evaluation mode
        conv, bn = (f"{name}.0", f"{name}.1") if name in ("query", "key") else (name, None)
        v = s[f"{conv}.weight"].squeeze((2, 3)) @ f + s[f"{conv}.bias"]
        if bn is None:
            return v
        return np.maximum(v / math.sqrt(1 + 1e-5) * s[f"{bn}.weight"] + s[f"{bn}.bias"], 0)

    def solar(local):
        q, k, v = ([point(f, name) for f in local] for name in ("query", "key", "value"))
        total = []
        for j, f in enumerate(local):
            a = np.exp([q[j] @ other / math.sqrt(len(q[j])) for other in k])
            mixed = sum(w * value for w, value in zip(a / a.sum(), v, strict=True))
            total.append(np.maximum(f + point(mixed, "psi"), 1e-6) ** p)
        return np.mean(total, axis=0) ** (1 / p)

    check(layer, solar)
    start = pooling.create("solar", C).double().eval()  # psi starts at 0
    torch.testing.assert_close(start(features()), pooling.create("gem", C).double()(features()))


def test_tsmk_and_that_its_weights_are_constants():
    def tsmk(local):
        grid = np.array(local).reshape(H, W, C)
        total = np.zeros(C)
        for y in range(H):
            for x in range(W):
                near = grid[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2].reshape(-1, C)
                total += np.linalg.norm(grid[y, x]) * near.mean(axis=0)
        return total / (H * W)

    layer = make_pooling("tsmk")
    check(layer, tsmk)
    x = features().requires_grad_()
    (gradient,) = torch.autograd.grad(layer(x)[:, 0].sum(), x)
    assert not gradient[:, 1:].any()  # the length would otherwise affect the other channels


def test_netvlad():
    layer = make_pooling("netvlad", clusters=3, dimension=4)
    s = state(layer)
    R, w = s["reduction.weight"].squeeze(), s["assignment.weight"].squeeze()

    def vlad(local):
        found = np.zeros((3, 4))
        for f in (R @ f for f in local):
            a = np.exp(w @ f + s["assignment.bias"])
            for i in range(3):
                found[i] += a[i] / a.sum() * (f - s["centers"][i])
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).ravel()

    check(layer, vlad)


def test_otp_and_its_marginals():
    layer = make_pooling("otp", clusters=3, dimension=4)
    s = state(layer)
    unit_ball = lambda v: v / max(1, np.linalg.norm(v))  # noqa: E731

    def otp(local, sweeps=10, epsilon=2.0):
        reduced = [s["reduction.weight"].squeeze() @ f for f in local]
        cost = [[np.linalg.norm(unit_ball(p) - unit_ball(f)) for f in reduced] for p in s["prototypes"]]
        K, n = np.exp(-epsilon * np.array(cost)), len(local)
        u = np.ones(3)
        for _ in range(sweeps):
            v = (1 / n) / (u @ K)
            u = (1 / 3) / (K @ v)
        T = u[:, None] * K * ((1 / n) / (u @ K))
        return math.sqrt(3) * (T @ np.array(reduced)).ravel()

    check(layer, otp)
    local = torch.randn(2, 12, 4, dtype=torch.float64)
    plan = make_pooling("otp", clusters=3, dimension=4, sweeps=100).plan(local)
    torch.testing.assert_close(plan.sum(1), torch.full((2, 12), 1 / 12, dtype=torch.float64))
    torch.testing.assert_close(plan.sum(2), torch.full((2, 3), 1 / 3, dtype=torch.float64))
    hard = pooling.create("otp", C, epsilon=2000.0, sweeps=3)(features().float())
    assert hard.isfinite().all()  # e^-2000 is 0, so that only the log domain works


@pytest.mark.parametrize("count", [1, 3, 50])
def test_weldon(count):
    def weldon(local):
        ordered = np.sort(np.array(local), axis=0)
        k = min(count, len(ordered))
        return ordered[-k:].sum(axis=0) + ordered[:k].sum(axis=0)

    check(make_pooling("weldon", count=count), weldon)


def test_gsp_with_maximum_is_the_sum_of_both():
    both, plain = make_pooling("gsp_gmp", prototypes=4, memory=0), make_pooling("gsp", prototypes=4, memory=0)
    x = features()
    torch.testing.assert_close(both(x), plain(x) + x.amax((2, 3)))
    torch.testing.assert_close(both.shares, plain.shares)
    gmp = pooling.create("gmp", C)
    gmp(x)
    torch.testing.assert_close(both.weights, (plain.weights + gmp.weights) / 2)
    assert both.shares.requires_grad


def test_the_average_may_be_taken_before_or_after_the_linear_layer():
    head = pooling.EmbeddingHead("gap", C, 4).double()
    x = features()
    torch.testing.assert_close(head(x), head.local(x).mean(1))


@in_one_case(scale=[0.1, 1.0, 10.0], leading=[(), (2,), (2, 3)])
def test_costs_are_distances_on_the_unit_ball(scale, leading):
    generator = torch.Generator().manual_seed(0)
    f = (scale * torch.randn(*leading, 7, 3, generator=generator, dtype=torch.float64)).requires_grad_()
    w = torch.randn(4, 3, generator=generator, dtype=torch.float64).requires_grad_()
    on_ball = lambda v: v / v.norm(dim=-1, keepdim=True).clamp(min=1)  # noqa: E731
    expected = (on_ball(w)[:, None] - on_ball(f)[..., None, :, :]).norm(dim=-1)
    cost = prototype_costs(f, w)
    torch.testing.assert_close(cost, expected, rtol=1e-12, atol=1e-14)
    slope = torch.randn(cost.shape, generator=generator, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad((slope * c).sum(), (f, w)) for c in (cost, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    if scale == 1.0 and len(leading) == 1:
        assert torch.autograd.gradcheck(prototype_costs, (f, w))
        assert torch.autograd.gradgradcheck(prototype_costs, (f, w))


def test_costs_keep_their_digits_near_a_prototype_and_have_no_slope_on_it():
    w = torch.randn(30, 64, generator=torch.Generator().manual_seed(0)) / 16  # inside the ball
    f = w + 1e-5 * torch.randn(30, 64, generator=torch.Generator().manual_seed(1))
    cost, exact = prototype_costs(f[None], w)[0], (w[:, None].double() - f.double()).norm(dim=-1)
    assert exact.diagonal().max() < 2e-4
    torch.testing.assert_close(cost.double(), exact, rtol=1e-3, atol=0)
    same = torch.full((1, 5, 3), 0.2).requires_grad_()
    prototype_costs(same, same[0, :2].detach()).sum().backward()
    assert not same.grad.any()
