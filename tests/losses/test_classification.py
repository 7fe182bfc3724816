import math

import pytest
import torch
import torch.nn.functional as F

from dmlcore import losses

SIZES = {"classes": 4, "embedding_dim": 3}
X = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.tensor([0, 0, 1, 1, 2, 2, 0])


def make(name: str, **hyper: float | str) -> torch.nn.Module:
    torch.manual_seed(0)
    return losses.for_training(name, **SIZES, **hyper).double()


def test_cross_entropy_and_both_ways_to_smooth_it() -> None:
    loss = make("cross_entropy", temperature=0.5)
    logits = X @ loss.proxies.T / 0.5
    assert torch.equal(loss(X, Y), F.cross_entropy(logits, Y))
    own = F.one_hot(Y, 4).double()
    for over, targets in (
        ("all", 0.7 * own + 0.3 / 4),
        ("others", 0.7 * own + 0.3 / 3 * (1 - own)),
    ):
        smoothed = make("cross_entropy", temperature=0.5, smoothing=0.3, over=over)(X, Y)
        assert smoothed.item() == pytest.approx(F.cross_entropy(logits, targets).item(), rel=1e-12)


def test_arcface_turns_the_own_angle_and_goes_on_falling_beyond_pi() -> None:
    loss = losses.for_training("arcface", classes=2, embedding_dim=2, margin=40.0, scale=3.0).double()
    loss.proxies.data[:] = torch.eye(2)
    m, before = math.radians(40), -math.inf
    for degrees in range(0, 180, 7):
        theta = math.radians(degrees)
        x = torch.tensor([[math.cos(theta), -math.sin(theta)]], dtype=torch.float64)
        own = math.cos(theta + m) if theta <= math.pi - m else math.cos(theta) - m * math.sin(m)
        expected = F.cross_entropy(3 * torch.tensor([[own, -math.sin(theta)]]), torch.tensor([0]))
        # the sine is bounded below where it is 0
        assert loss(x, torch.tensor([0])).item() == pytest.approx(expected.item(), abs=1e-6)
        assert -own > before
        before = -own


def test_arcface_has_finite_gradients_at_its_proxy_and_opposite() -> None:
    loss = losses.for_training("arcface", classes=2, embedding_dim=2)
    loss.proxies.data[:] = torch.eye(2)
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], requires_grad=True)
    loss(x, torch.tensor([0, 0])).backward()
    assert x.grad.isfinite().all()
