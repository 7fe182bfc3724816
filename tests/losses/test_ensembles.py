"""Ensembles of losses: golden values of every part and of one step, and the gradients of each member."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from dmlcore import losses
from dmlcore.losses.classification import CrossEntropy
from dmlcore.losses.engine.ensemble import (
    Coefficients,
    Compression,
    DiverseEnsemble,
    Rescaling,
    compression_loss,
    diversity,
)
from dmlcore.losses.ensembles import members
from dmlcore.losses.hinges import TripletHinge
from dmlcore.losses.proxies import ProxyNCA
from dmlcore.spec import RunSpec
from dmlcore.training import objective, optimisers

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())
DOUBLE = torch.float64


def grid(rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(rows, dtype=DOUBLE)[:, None], torch.arange(columns, dtype=DOUBLE)


def probe(gradient: torch.Tensor) -> float:
    i, d = grid(*gradient.shape)
    return (gradient * torch.cos(0.3 * i - 0.8 * d + 0.2)).sum().item()


@pytest.mark.parametrize(
    ("key", "rate", "order"),
    [
        ("update_first_s1", 1.0, "update_first"),
        ("update_first_s05", 0.5, "update_first"),
        ("normalise_first_s1", 1.0, "normalise_first"),
    ],
)
def test_golden_rescaling(key: str, rate: float, order: str) -> None:
    golden, rescaling = GOLDEN["ema_rescaling"], Rescaling(4, rate, order).double()
    before = torch.tensor(golden["losses"][0], dtype=DOUBLE)
    for step, values in zip(golden[key], golden["losses"], strict=True):
        found = rescaling(torch.tensor(values, dtype=DOUBLE))
        assert found.tolist() == pytest.approx(step["normalised"], rel=1e-12)
        assert rescaling.means.tolist() == pytest.approx(step["means"], rel=1e-12)
        scale = found[0].item() / values[0] * (before if order == "normalise_first" else rescaling.means)[0].item()
        assert scale == pytest.approx(step["bar"], rel=1e-12)  # common length of all blocks
        before = rescaling.means.clone()


def test_the_running_mean_is_the_mean_of_all_steps_and_survives_a_resume() -> None:
    rescaling = Rescaling(2)
    for value in range(1, 11):
        if value == 6:
            state = copy.deepcopy(rescaling.state_dict())
            rescaling = Rescaling(2)
            rescaling.load_state_dict(state)
        rescaling(torch.tensor([value, 2.0 * value]))
    assert rescaling.means.tolist() == pytest.approx([5.5, 11.0])
    before = rescaling.means.clone()
    assert rescaling.eval()(torch.tensor([1.0, 2.0])).tolist() == pytest.approx([1.5, 1.5])
    assert torch.equal(rescaling.means, before)


def test_rescaling_keeps_a_loss_of_zero_at_zero() -> None:
    assert Rescaling(2)(torch.tensor([0.0, 3.0])).tolist() == [0.0, 1.5]


def test_golden_objective() -> None:
    golden = GOLDEN["wel_objective"]
    coefficients = Coefficients(golden["prior"], golden["eta"]).double()
    assert coefficients.roots.tolist() == pytest.approx(golden["initial_c_for_prior"], rel=1e-7)
    assert coefficients.weights.sum().item() == pytest.approx(1, rel=1e-6)
    assert coefficients.least == golden["alpha"]
    coefficients.roots.data = torch.tensor(golden["c"], dtype=DOUBLE)
    value = coefficients(torch.tensor(golden["normalised_losses"], dtype=DOUBLE))
    value.backward()
    assert value.item() == pytest.approx(golden["value"], rel=1e-9)
    assert coefficients.roots.grad.tolist() == pytest.approx(golden["grad_c"], rel=1e-8)


def test_the_smallest_loss_takes_every_weight_above_the_least() -> None:
    """Minimise the coefficients for constant losses."""
    coefficients, fixed = Coefficients((0.25,) * 4).double(), torch.tensor([1.0, 1.2, 0.9, 1.1], dtype=DOUBLE)
    total = 1 - fixed.min() / (2 * coefficients.eta)
    best = torch.tensor([0, 0, (total - 4 * coefficients.least).sqrt(), 0], dtype=DOUBLE)
    assert (best.square() + coefficients.least).tolist() == pytest.approx([0.0625, 0.0625, 0.808, 0.0625], abs=1e-4)
    coefficients.roots.data = best.clone()
    value = coefficients(fixed)
    value.backward()
    assert coefficients.roots.grad.abs().max() < 1e-9
    for move in torch.randn(200, 4, generator=torch.Generator().manual_seed(0), dtype=DOUBLE):
        coefficients.roots.data = best + 0.3 * move
        assert coefficients(fixed) > value


def golden_blocks() -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit blocks (N, M, e) and their weights."""
    golden = GOLDEN["ensemble"]
    r, d = grid(golden["M"] * golden["N"], golden["e"])
    rows = F.normalize(torch.sin(0.9 + 1.7 * r + 0.8 * d + 0.3 * r * d), dim=1)
    return rows.view(golden["M"], golden["N"], golden["e"]).transpose(0, 1), torch.tensor(
        golden["weights"], dtype=DOUBLE
    )


@pytest.mark.parametrize(("key", "squared"), [("squared", True), ("euclid", False)])
def test_golden_diversity(key: str, squared: bool) -> None:
    blocks, _ = golden_blocks()
    golden, apart = GOLDEN["ensemble"]["diversity"][key], diversity(blocks, squared=squared)
    assert apart.item() == pytest.approx(golden["D"], rel=1e-12)
    assert (2 - apart).relu().item() == pytest.approx(golden["hinge"], rel=1e-9)


def test_the_printed_diversity_is_half_of_the_way_from_ours_to_two() -> None:
    """Printed: 2 - f'f for 2 - 2 f'f, so equal blocks would lie 1 apart."""
    blocks, _ = golden_blocks()
    printed, golden = 1 + diversity(blocks).item() / 2, GOLDEN["ensemble"]["diversity"]["printed"]
    assert printed == pytest.approx(golden["D"], rel=1e-12)
    assert max(0.0, 2 - printed) == pytest.approx(golden["hinge"], rel=1e-9)


def test_diversity_at_its_ends() -> None:
    same = torch.ones(3, 4, 1).expand(3, 4, 2) / 2**0.5
    assert diversity(same).item() == pytest.approx(0, abs=1e-6)
    assert diversity(torch.eye(4).expand(5, 4, 4)).item() == pytest.approx(2)
    simplex = F.normalize(torch.eye(4) - 0.25, dim=1)
    assert diversity(simplex[None]).item() == pytest.approx(2 * 4 / 3)


def test_golden_evaluation_distances_and_compression() -> None:
    golden, (blocks, weights) = GOLDEN["ensemble"], golden_blocks()
    wedl = DiverseEnsemble([torch.nn.Identity()] * 4, (0.25,) * 4, 100.0, 1.0).double()
    wedl.coefficients.roots.data = (weights - wedl.coefficients.least).sqrt()
    joined = wedl.embed(3 * blocks.flatten(1))
    squares = torch.cdist(joined, joined).square()
    torch.testing.assert_close(squares, torch.tensor(golden["distance_matrix"], dtype=DOUBLE), rtol=1e-9, atol=1e-9)
    r, d = grid(joined.shape[1], golden["e"])
    compressed = torch.tanh(joined @ torch.cos(0.3 + 0.7 * r - 0.9 * d))
    torch.testing.assert_close(compressed, torch.tensor(golden["g"], dtype=DOUBLE))
    printed = compression_loss(joined, compressed).item() / len(joined) ** 4
    assert printed == pytest.approx(golden["compression_loss"], rel=1e-9)


def test_golden_whole_step() -> None:
    golden = GOLDEN["wedl_full"]
    labels = torch.tensor(GOLDEN["batches"]["balanced"]["labels"])
    i, d = grid(12, 5)
    y = labels.double()[:, None]
    x = 0.8 * torch.cos(1.7 * y + 0.9 * d * (y + 1)) + 0.9 * torch.sin(0.7 * i + 1.3 * d + 0.77 * i * d + 1)
    x.requires_grad_()
    r, d = grid(5, 4)
    heads = [torch.cos(0.5 * j + 0.9 * r - 0.6 * d + 0.2 * r * d).requires_grad_() for j in range(4)]
    each = members(4, 4)
    each[1] = TripletHinge(1.0, "euclidean", "window", 0.5, "nonzero")
    each[3] = ProxyNCA(0.5, "others", classes=4, embedding_dim=4)
    wedl = DiverseEnsemble(each, (0.25,) * 4, golden["eta"], 1.0, golden["lam"]).double()
    wedl.coefficients.roots.data = torch.tensor(golden["c"], dtype=DOUBLE)
    c, d = grid(4, 4)
    each[0].proxies.data, each[3].proxies.data = torch.cos(0.8 * c + 0.5 * d), torch.sin(0.7 + 1.2 * c - 0.4 * d)

    outputs = torch.cat([x @ head for head in heads], dim=1)
    apart = diversity(F.normalize(outputs.view(12, 4, 4), dim=2))
    assert (2 - apart).relu().item() == pytest.approx(golden["diversity_hinge"], rel=1e-9)
    assert wedl.coefficients.least == golden["alpha"]
    value = wedl(outputs, labels)
    value.backward()
    assert wedl.values.tolist() == pytest.approx(golden["raw_losses"], rel=1e-9)
    assert value.item() == pytest.approx(golden["value"], rel=1e-9)
    assert wedl.coefficients.roots.grad.tolist() == pytest.approx(golden["grad_c"], rel=1e-8)
    for gradient, known in [
        (x.grad, golden["grad_embeddings"]),
        *zip((h.grad for h in heads), golden["grad_heads"], strict=True),
    ]:
        assert gradient.norm().item() == pytest.approx(known["norm"], rel=1e-8)
        assert probe(gradient) == pytest.approx(known["dot"], rel=1e-8)


def batch(width: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(12, width, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 4


@pytest.mark.parametrize("name", ["wel", "wedl"])
def test_all_parameters_are_trained(name: str) -> None:
    x, labels = batch(8)
    loss = losses.for_training(name, classes=4, embedding_dim=8, **({"compression": "on"} if name == "wedl" else {}))
    loss(x.requires_grad_(), labels).backward()
    assert len(list(loss.parameters())) >= 3
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in loss.parameters())
    assert x.grad.abs().sum() > 0


def test_each_loss_changes_its_block_alone() -> None:
    x, labels = batch(8)
    wedl = losses.for_training("wedl", classes=4, embedding_dim=8, diversity=0.0)
    for j in range(4):
        leaf = x.clone().requires_grad_()
        only = wedl.members[j](wedl.inputs(leaf)[j], labels)
        only.backward()
        used = leaf.grad.view(12, 4, 2).abs().sum((0, 2)) > 0
        assert used.tolist() == [k == j for k in range(4)]


def test_compression_trains_beside_and_leaves_the_embedding_alone() -> None:
    x, labels = batch(32)
    torch.manual_seed(0)
    plain = losses.for_training("wedl", classes=4, embedding_dim=32)
    torch.manual_seed(0)
    loss = losses.for_training("wedl", classes=4, embedding_dim=32, compression="on")
    one, two = x.clone().requires_grad_(), x.clone().requires_grad_()
    plain(one, labels).backward()
    loss(two, labels).backward()
    assert torch.equal(one.grad, two.grad)
    assert plain.embed(x).shape == (12, 32)
    assert loss.embed(x).shape == (12, 8)
    network, joined = Compression(4, 8), loss.weighted_blocks(x).detach()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    values = []
    for _ in range(80):
        value = compression_loss(joined, network(joined))
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        values.append(value.item())
    assert values[-1] < 0.2 * values[0]


def test_classifier_of_wel_reads_the_embedding_as_it_is() -> None:
    x, labels = batch(8)
    wel = losses.for_training("wel", classes=4, embedding_dim=8)
    wel(5 * x, labels)
    long = wel.values.clone()
    wel(x, labels)
    assert torch.allclose(long[1:], wel.values[1:], rtol=1e-4)
    assert not torch.isclose(long[0], wel.values[0])
    assert isinstance(wel.members[0], CrossEntropy)


@pytest.mark.parametrize(
    ("switches", "names", "prior"),
    [
        ({"triplet": "off"}, ("classifier", "binomial", "proxy_nca"), (2 / 7, 2 / 7, 3 / 7)),
        ({"classifier": "off", "binomial": "off"}, ("triplet", "proxy_nca"), (1 / 4, 3 / 4)),
        (
            {"multi_similarity": "on", "soft_triple": "on"},
            ("classifier", "triplet", "binomial", "proxy_nca", "multi_similarity", "soft_triple"),
            (2 / 12, 1 / 12, 2 / 12, 3 / 12, 2 / 12, 2 / 12),
        ),
    ],
)
def test_any_set_of_losses_is_an_ensemble(
    switches: dict[str, str], names: tuple[str, ...], prior: tuple[float, ...]
) -> None:
    x, labels = batch(12)
    for name in ("wel", "wedl"):
        loss = losses.for_training(name, classes=4, embedding_dim=12, **switches)
        assert loss.coefficients.weights.tolist() == pytest.approx(prior, rel=1e-6)
        value = loss(x, labels)
        value.backward()
        alone = [member(part, labels).item() for member, part in zip(loss.members, loss.inputs(x), strict=True)]
        measured = loss.measured()
        assert [measured[f"loss_{member}"].item() for member in names] == pytest.approx(alone, rel=1e-6)
        assert [measured[f"weight_{member}"].item() for member in names] == pytest.approx(prior, rel=1e-6)
        assert sum(key.startswith("loss_") for key in measured) == len(names)
        # at the first step every loss is rescaled to their mean, so the weights, which sum to 1, change nothing
        hinge = 0.01 * max(0.0, 2 - measured["diversity"].item()) if name == "wedl" else 0.0
        assert value.item() == pytest.approx(sum(alone) / len(names) + hinge, rel=1e-5)


def test_fixed_weights_stay_as_they_start() -> None:
    """Eq. 10: equal weights are c^2 + 1 / (4 M) = 1 / M."""
    x, labels = batch(8)
    loss = losses.for_training("wedl", classes=4, embedding_dim=8, weights="fixed", prior="equal", diversity=0.0)
    learned = losses.for_training("wedl", classes=4, embedding_dim=8, prior="equal")
    optimisers = [torch.optim.Adam(each.parameters(), lr=0.1) for each in (loss, learned)]
    for _ in range(3):
        for each, optimiser in zip((loss, learned), optimisers, strict=True):
            optimiser.zero_grad()
            each(x, labels).backward()
            optimiser.step()
    assert loss.coefficients.weights.tolist() == pytest.approx([0.25] * 4, rel=1e-6)
    assert learned.coefficients.weights.tolist() != pytest.approx([0.25] * 4, rel=1e-2)
    assert loss.state_dict().keys() == learned.state_dict().keys()
    loss.eval()
    losses_now = loss.rescaling(torch.stack([m(b, labels) for m, b in zip(loss.members, loss.inputs(x), strict=True)]))
    assert loss(x, labels).item() == pytest.approx(losses_now.mean().item(), rel=1e-5)


def test_weights_learn_at_the_rate_of_the_network_where_that_is_asked_for() -> None:
    settings = ["loss.name=wedl", "loss.learning_rate=0.015", "optimiser.learning_rate=1e-4", "model.embedding_dim=8"]
    for rate, expected in (("loss", 0.015), ("network", 1e-4)):
        spec = RunSpec().with_overrides([*settings, f"loss.weights_rate={rate}"])
        model, loss = torch.nn.Linear(2, 2), objective.metric_loss(spec, classes=3)
        model.head_parameters = list
        groups = optimisers.create(spec, model, loss).param_groups
        rates = {id(p): group["lr"] for group in groups for p in group["params"]}
        assert rates[id(loss.coefficients.roots)] == expected
        assert rates[id(loss.members[3].proxies)] == rates[id(loss.members[0].proxies)] == 0.015


def test_refusals_name_the_culprit() -> None:
    with pytest.raises(ValueError, match=r"wedl: each of 3 losses has a block .* must divide by 3, got 8"):
        losses.for_training("wedl", classes=4, embedding_dim=8, triplet="off")
    alone = dict.fromkeys(("classifier", "triplet", "binomial"), "off")
    for name in ("wel", "wedl"):
        with pytest.raises(ValueError, match=f"{name}: needs two losses; set another of classifier, triplet"):
            losses.for_training(name, classes=4, embedding_dim=8, **alone)
    with pytest.raises(
        ValueError,
        match="wedl: each of 4 losses has a block of the embedding, so embedding_dim must divide by 4, got 6",
    ):
        losses.for_training("wedl", classes=4, embedding_dim=6)
    wedl = losses.for_training("wedl", classes=4, embedding_dim=8)
    with pytest.raises(ValueError, match="must have 4 blocks of columns, got 6"):
        wedl(torch.randn(4, 6), torch.tensor([0, 0, 1, 1]))
    with pytest.raises(ValueError, match="4 losses need as many weights, got 2"):
        DiverseEnsemble(members(2, 2), (0.5, 0.5), 100.0, 1.0)


def test_the_classifier_of_wel_reads_the_features_before_the_embedding_and_the_others_do_not() -> None:
    """Fig. 9: the loss of the classifier depends on phi alone, and no other member has a gradient there."""
    features, labels = torch.randn(8, 5, generator=torch.Generator().manual_seed(0)), torch.arange(8) // 2
    layer = torch.nn.Linear(5, 6)
    for classifier_input in ("embedding", "features"):
        wel = losses.for_training(
            "wel", classes=4, embedding_dim=6, pooled_dim=5, classifier_input=classifier_input, prior="equal"
        )
        x = features.clone().requires_grad_()
        embeddings = layer(x.detach())
        wel(embeddings, labels, pooled=x).backward()
        alone = CrossEntropy(1.0, 0.15, "all", classes=4, embedding_dim=wel.members[0].proxies.shape[1])
        alone.load_state_dict(wel.members[0].state_dict())
        read = x if classifier_input == "features" else embeddings
        assert wel.values[0] == alone(read, labels).detach()
        assert [member.proxies.shape[1] for member in wel.members if hasattr(member, "proxies")] == [
            5 if classifier_input == "features" else 6,
            6,
        ]
        if classifier_input == "features":  # in the first step all losses are rescaled to their mean
            scale = wel.values.mean() / wel.values[0] * wel.weights[0]
            by_it = torch.autograd.grad(scale * alone(x, labels), x)[0]
            assert torch.allclose(x.grad, by_it, rtol=1e-5)
        else:
            assert x.grad is None
    with pytest.raises(ValueError, match="pass them as pooled"):
        wel(embeddings, labels)


def test_a_classifier_that_is_off_or_a_network_without_features_is_refused() -> None:
    sizes = {"classes": 4, "embedding_dim": 6, "classifier_input": "features"}
    with pytest.raises(ValueError, match="classifier is off"):
        losses.for_training("wel", **sizes, pooled_dim=5, classifier="off")
    with pytest.raises(ValueError, match="no features before its embedding"):
        losses.for_training("wel", **sizes)
