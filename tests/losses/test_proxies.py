"""Proxy losses against pytorch-metric-learning and plain loops, and identities between proxy losses."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore import losses
from tests.members import in_one_case

LABELS = {"balanced": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], "uneven": [0, 0, 0, 0, 1, 1, 2, 2, 4]}  # 3 absent, 4 alone
SIZES = {"classes": 5, "embedding_dim": 6}


def batch(labels: list[int]) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(len(labels), 6, generator=generator, dtype=torch.float64), torch.tensor(labels)


def make(name: str, **hyper: float | str) -> nn.Module:
    torch.manual_seed(1)
    return losses.for_training(name, **SIZES, **hyper).double()


def results(loss: nn.Module, x: Tensor, y: Tensor, weights: nn.Parameter) -> tuple[Tensor, Tensor, Tensor]:
    x = x.clone().requires_grad_()
    value = loss(x, y)
    return value.detach(), *torch.autograd.grad(value, (x, weights))


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("which", range(5))
def test_twins_in_pytorch_metric_learning(which: int, labels: list[int]) -> None:
    from pytorch_metric_learning import losses as pml

    name, hyper, twin, weights = [
        ("proxy_nca", {"temperature": 0.3}, pml.NormalizedSoftmaxLoss(5, 6, temperature=0.3), "W"),
        ("proxy_nca", {"temperature": 1 / 16}, pml.ProxyNCALoss(5, 6, softmax_scale=8), "proxies"),
        ("proxy_anchor", {}, pml.ProxyAnchorLoss(5, 6, margin=0.1, alpha=32), "proxies"),
        ("arcface", {"scale": 8.0}, pml.ArcFaceLoss(5, 6, margin=28.6, scale=8), "W"),
        (
            "soft_triple",
            {"centres": 3, "tau": 0.0, "delta": 0.2},
            pml.SoftTripleLoss(5, 6, centers_per_class=3, la=20, gamma=0.1, margin=0.2),
            "fc",
        ),
    ][which]
    x, y = batch(labels)
    ours = make(name, **hyper)
    twin = twin.double()
    theirs = getattr(twin, weights)
    turned = weights != "proxies"
    theirs.data = ours.proxies.data.T.clone() if turned else ours.proxies.data.clone()
    expected = results(twin, x, y, theirs)
    expected = (*expected[:2], expected[2].T if turned else expected[2])
    torch.testing.assert_close(results(ours, x, y, ours.proxies), expected, rtol=1e-9, atol=1e-11)


def test_proxy_nca_leaves_the_own_proxy_out_and_may_be_negative() -> None:
    x, y = batch(LABELS["uneven"])
    loss = make("proxy_nca", temperature=0.05, denominator="others")
    loss.proxies.data[:] = torch.randn(5, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    s = F.normalize(x) @ F.normalize(loss.proxies).T / 0.05
    others = [torch.logsumexp(torch.cat([s[i, : y[i]], s[i, y[i] + 1 :]]), 0) - s[i, y[i]] for i in range(len(y))]
    assert loss(x, y).item() == pytest.approx((sum(others) / len(y)).item(), rel=1e-12)
    for c in range(5):
        loss.proxies.data[c] = x[y == c].mean(0) if (y == c).any() else -x.mean(0)
    assert loss(x, y).item() < 0


def test_the_direct_push_moves_no_sample_and_the_one_through_the_batch_does() -> None:
    x, y = batch(LABELS["balanced"])
    pulls = {}
    for through in ("proxies", "batch"):
        loss = make("proxy_push", through=through, alpha=4.0)
        w = F.normalize(loss.proxies)
        g = w @ w.T if through == "proxies" else (w @ F.normalize(x).T) @ (F.normalize(x) @ w.T)
        push = sum(math.log1p(sum(math.exp(4 * (g[c, k] + 0.1)) for k in range(5) if k != c)) for c in range(5)) / 5
        pulls[through] = loss(x, y).item() - push
    assert pulls["proxies"] == pytest.approx(pulls["batch"], rel=1e-12)


def test_a_large_bilinear_sum_does_not_overflow() -> None:
    loss = losses.for_training("proxy_push", **SIZES)
    x = torch.ones(256, 6)
    loss.proxies.data[:] = 1.0  # g = 256, so that e^(32 g) has 3558 digits
    value = loss(x, torch.arange(256) % 5)
    value.backward()
    assert value.item() == pytest.approx(32 * (256 + 0.1) + math.log(4), rel=1e-4)
    assert loss.proxies.grad.isfinite().all()


def test_the_regulariser_of_soft_triple_is_the_mean_distance_of_centres() -> None:
    x, y = batch(LABELS["balanced"])
    with_it, without = make("soft_triple", centres=3, tau=0.7), make("soft_triple", centres=3, tau=0.0)
    w = F.normalize(with_it.proxies).view(5, 3, 6)
    apart = [torch.sqrt(2 + 1e-5 - 2 * w[c, k] @ w[c, j]) for c in range(5) for k in range(3) for j in range(k)]
    assert (with_it(x, y) - without(x, y)).item() == pytest.approx(0.7 * (sum(apart) / (5 * 3 * 2)).item(), rel=1e-9)
    with pytest.raises(ValueError, match=r"centres must be a whole number, got 2\.5"):
        make("soft_triple", centres=2.5)


@in_one_case(divisor=["nonzero", "pairs", "anchors", "one"])
def test_triplets_with_proxies_are_those_of_a_loop(divisor: str) -> None:
    x, y = batch(LABELS["uneven"])
    loss = make("triplet_proxy", m=0.4, per_class=2, divisor=divisor)
    own = torch.arange(5).repeat_interleave(2)

    def clip_to_unit_ball(z: Tensor) -> Tensor:
        return z / z.norm(dim=1, keepdim=True).clamp(min=1)

    d = torch.cdist(clip_to_unit_ball(x), clip_to_unit_ball(loss.proxies))
    terms = [
        (d[i, p] - d[i, n] + 0.4).relu()
        for i in range(len(y))
        for p in range(10)
        for n in range(10)
        if own[p] == y[i] != own[n]
    ]
    over = {"nonzero": sum(t.item() > 0 for t in terms), "pairs": len(terms), "anchors": len(y), "one": 1}[divisor]
    value = loss(x, y)
    assert value.item() == pytest.approx((sum(terms) / over).item(), rel=1e-9)
    expected = torch.autograd.grad(sum(terms) / over, loss.proxies)[0]
    torch.testing.assert_close(torch.autograd.grad(value, loss.proxies)[0], expected, rtol=1e-8, atol=1e-10)
    assert loss.counts.nonzero == sum(t.item() > 0 for t in terms)
    assert loss.counts.valid == len(terms)


@pytest.mark.parametrize("name", ["contrastive_proxy", "multi_similarity_proxy", "triplet_proxy"])
def test_proxies_of_a_class_lie_together(name: str) -> None:
    """If all proxies of a class are equal, their number has no effect."""
    x, y = batch(LABELS["balanced"])
    hyper = {} if name == "multi_similarity_proxy" else {"divisor": "pairs"}
    one, three = make(name, per_class=1, **hyper), make(name, per_class=3, **hyper)
    three.proxies.data[:] = one.proxies.data.repeat_interleave(3, 0)
    if name != "multi_similarity_proxy":  # this loss adds proxies up instead of averaging
        assert three(x, y).item() == pytest.approx(one(x, y).item(), rel=1e-12)
    else:
        assert three(x, y).item() > one(x, y).item()


@pytest.mark.parametrize("name", ["contrastive_proxy", "multi_similarity_proxy", "triplet_proxy"])
def test_classes_without_samples_can_be_left_out(name: str) -> None:
    """Proxies of excluded classes have no effect and no gradient."""
    x, y = batch(LABELS["uneven"])
    loss = make(name, per_class=2)
    present = y.unique()
    absent = [c for c in range(loss.classes) if c not in present]
    assert absent
    loss.proxies.data *= 0.5
    # close enough to count, for any random initialisation
    loss.proxies.data.view(loss.classes, -1)[absent] = x[:2].flatten()
    everything = loss(x, y).item()
    loss.trained = present
    value = loss(x, y)
    gradient = torch.autograd.grad(value, loss.proxies)[0].view(loss.classes, -1)
    assert not gradient[absent].any()
    assert gradient[present].any()
    loss.proxies.data.view(loss.classes, -1)[absent] += 1.0
    assert loss(x, y).item() == value.item() != everything


@pytest.mark.parametrize(
    ("name", "twin", "given"),
    [
        ("contrastive_proxy", "contrastive", {"distance": "ball"}),
        ("triplet_proxy", "triplet", {"distance": "ball", "m": 0.0961}),
    ],
)
def test_between_the_samples_it_is_the_loss_of_pairs(name: str, twin: str, given: dict[str, float | str]) -> None:
    x, y = batch(LABELS["uneven"])
    assert make(name, per_class=2).between(x, y).item() == make(twin, **given)(x, y).item() > 0


def test_c1_with_one_proxy_of_each_class_is_c1_against_them() -> None:
    """Gurbuz 2022, Sec. 3.3: [1 - s - 1e-5]+ to the own proxies, [s - 0.5]+ to the others, over the anchors."""
    x, y = batch(LABELS["uneven"])
    loss = make("contrastive_proxy", per_class=2, distance="cosine", m_pos=1e-5, m_neg=0.5, divisor="anchors")
    s = torch.nn.functional.normalize(x) @ torch.nn.functional.normalize(loss.proxies).mT
    own = y[:, None] == torch.arange(loss.classes).repeat_interleave(2)
    expected = torch.where(own, (1 - s - 1e-5).relu(), (s - 0.5).relu()).sum() / len(y)
    assert loss(x, y).item() == pytest.approx(expected.item(), rel=1e-9)
