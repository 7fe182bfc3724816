"""Statistics of a batch compared with plain loops in float64."""

import itertools
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.training import batch_statistics
from dmlcore.training.batch_statistics import measure


def batch(classes=5, samples=4, dim=6, unit=True, seed=0):
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes * samples) % classes
    x = torch.randn(classes, dim, generator=random)[labels] + torch.randn(len(labels), dim, generator=random)
    return (torch.nn.functional.normalize(x) if unit else 3 * x), labels


def loops(x, labels, clamp):
    """Compute the definitions of the docstring, element by element."""
    x, labels, n = x.double().numpy(), labels.tolist(), len(x)
    d = np.linalg.norm(x[:, None] - x[None], axis=-1)
    pairs = list(itertools.permutations(range(n), 2))
    positive = [d[i, j] for i, j in pairs if labels[i] == labels[j]]
    negative = [d[i, j] for i, j in pairs if labels[i] != labels[j]]
    triplets = [
        d[a, p] - d[a, k] for a, p in pairs if labels[a] == labels[p] for k in range(n) if labels[k] != labels[a]
    ]
    active = [0 < raw + clamp[0] < clamp[1] for raw in triplets]
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    near = ((u[:, None] - u[None]) ** 2).sum(-1)
    singular = np.linalg.svd(x - x.mean(0), compute_uv=False)
    share = singular / singular.sum()
    share = share[share > 0]
    radii = [
        min(max(d[i, j] for j in range(n) if labels[j] == c) for i in range(n) if labels[i] == c)
        for c in set(labels)
        if labels.count(c) > 1
    ]
    return {
        "triplets": len(triplets),
        "violating": np.mean([raw > 0 for raw in triplets]),
        "active": np.mean(active),
        "positive_distance": np.mean(positive),
        "negative_distance": np.mean(negative),
        "norm": np.linalg.norm(x, axis=1).mean(),
        "spread": np.sqrt(((x - x.mean(0)) ** 2).sum() / (x**2).sum()),
        "effective_rank": np.exp(-(share * np.log(share)).sum()),
        "largest_share": share.max(),
        "alignment": np.mean([near[i, j] for i, j in pairs if labels[i] == labels[j]]),
        "uniformity": np.log(np.mean([np.exp(-2 * near[i, j]) for i, j in pairs])),
        "covering_radius": np.mean(radii),
    }


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("clamp", [(0.2, np.inf), (0.1, 0.3)])
@pytest.mark.parametrize("shape", [(5, 4, 6), (3, 2, 40), (4, 1, 3)], ids=["B > D", "B < D", "one sample a class"])
def test_every_number_equals_its_definition(unit, clamp, shape):
    x, labels = batch(*shape, unit=unit)
    labels = torch.cat([labels, torch.tensor([99])])  # a class of one sample: in no pair of its own
    x = torch.cat([x, x[:1].flip(1)])
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning) if shape[1] == 1 else nullcontext():
        expected = {name: value for name, value in loops(x, labels, clamp).items() if np.isfinite(value)}
    found = measure(x, labels, clamp)
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=2e-6, rel=2e-6)
    assert found.keys() - expected.keys() == {"histogram_to", "positive_histogram", "negative_histogram"}


def test_histograms_count_every_ordered_pair_on_a_scale_that_says_how_far_it_goes():
    for unit in (True, False):
        x, labels = batch(unit=unit)
        found = measure(x, labels)
        d = torch.cdist(x.double(), x.double()).numpy()
        same = (labels[:, None] == labels).numpy()
        top = found["histogram_to"]
        assert (top == 2.0) if unit else (top / 2 < d.max() <= top and np.log2(top) % 1 == 0)
        for name, pairs in (("positive", same & ~np.eye(len(x), dtype=bool)), ("negative", ~same)):
            assert found[f"{name}_histogram"] == np.histogram(d[pairs], bins=20, range=(0, top))[0].tolist()


@pytest.mark.parametrize("x", [torch.full((6, 3), 0.5), torch.zeros(6, 3)], ids=["one point", "the origin"])
def test_a_collapsed_batch_is_told_and_holds_nothing_undefined(x):
    found = measure(x, torch.arange(6) % 2, (0.2, 1.0))
    assert found["positive_distance"] == found["negative_distance"] == found["covering_radius"] == 0
    assert found.get("spread", 0) == 0
    assert "effective_rank" not in found
    assert found["active"] == 1  # every raw energy is m = 0.2
    assert all(np.isfinite(value).all() for value in found.values())


def test_a_line_has_one_dimension_and_isotropic_points_nearly_all():
    labels = torch.arange(400) % 4
    random = torch.Generator().manual_seed(0)
    line = torch.randn(400, 1, generator=random) * torch.ones(1, 8)
    assert measure(line, labels)["effective_rank"] == pytest.approx(1, abs=1e-6)
    assert measure(line, labels)["largest_share"] == pytest.approx(1, abs=1e-6)
    assert measure(torch.randn(400, 8, generator=random), labels)["effective_rank"] > 7.9


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_embeddings_that_are_not_finite_leave_out_what_they_spoil(value):
    x, labels = batch()
    x[3, 2] = value
    found = measure(x, labels, (0.2, 1.0))
    assert all(np.isfinite(number).all() for number in found.values())
    assert "positive_distance" not in found
    assert "effective_rank" not in found


def test_pull_and_push_are_the_two_halves_of_the_gradient():
    x, labels = batch()
    loss = losses.create("ranking", m=0.5)
    loss(x, labels)
    counts = loss.counts
    found = measure(x, labels, loss=loss)
    assert loss.counts == counts
    leaf = x.double().requires_grad_()
    loss(leaf, labels).backward()
    same = labels[:, None] == labels

    def half(pairs):
        """Return the gradient with every distance outside `pairs` held constant."""
        y = x.double().requires_grad_()
        d = torch.cdist(y, y, compute_mode="donot_use_mm_for_euclid_dist")
        loss.of_tables(torch.where(pairs, d, d.detach()), y.detach().square().sum(1), labels).backward()
        return y.grad

    pull, push = half(same), half(~same)
    assert torch.allclose(pull + push, leaf.grad, atol=1e-12)
    assert found["pull"] == pytest.approx(pull.norm(dim=1).mean().item(), rel=1e-5)
    assert found["push"] == pytest.approx(push.norm(dim=1).mean().item(), rel=1e-5)
    assert "pull" not in measure(x, labels, loss=torch.nn.CosineEmbeddingLoss())


def test_the_largest_columns_are_looked_up_alike_on_a_device_that_is_not_asked(monkeypatch):
    """On a GPU the size of the largest class is unknown; the result is the same."""
    x, labels = batch()
    there = batch_statistics._triplets
    distances, same = torch.cdist(x, x), labels[:, None] == labels
    same &= ~torch.eye(len(x), dtype=torch.bool)

    class Elsewhere(torch.Tensor):
        is_cpu = False

    expected = there(distances, same, labels[:, None] != labels, (0.2, 0.5))
    found = there(distances.as_subclass(Elsewhere), same, labels[:, None] != labels, (0.2, 0.5))
    assert {name: float(value) for name, value in found.items()} == {n: float(v) for n, v in expected.items()}


def test_half_precision_and_a_graph_are_welcome_and_bad_shapes_are_named():
    x, labels = batch()
    assert measure(x.bfloat16().requires_grad_(), labels)["triplets"] == measure(x, labels)["triplets"]
    with pytest.raises(ValueError, match=r"embeddings must be \(B, D\)"):
        measure(x[0], labels)
    with pytest.raises(ValueError, match="labels"):
        measure(x, labels[:3])
