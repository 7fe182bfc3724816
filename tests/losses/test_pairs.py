"""Pair losses, hinges and structured losses against pytorch-metric-learning and plain loops, with listed pairs and
references.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore import losses
from dmlcore.losses.engine.distances import distance_table, euclidean, unit
from dmlcore.losses.hinges import count_triplets
from tests.members import in_one_case

LABELS = {
    "balanced": [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
    "uneven": [4, 4, 4, 4, 1, 1, 1, 2, 2, 0, 0, 3],  # class 5 is absent, class 3 a singleton
}
PAIRED = [4, 4, 4, 4, 1, 1, 1, 2, 2, 0, 0, 0]  # every sample has a positive


def batch(labels: list[int], seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(labels), generator=generator)
    return torch.randn(len(labels), 6, generator=generator, dtype=torch.float64), torch.tensor(labels)[order]


def make(name: str, **hyper: float | str) -> torch.nn.Module:
    return losses.for_training(name, classes=6, embedding_dim=6, **hyper).double()


def value_and_gradient(loss: torch.nn.Module, x: Tensor, *given: object) -> tuple[Tensor, Tensor]:
    x = x.clone().requires_grad_()
    value = loss(x, *given)
    return value.detach(), torch.autograd.grad(value, x)[0]


def twins() -> list:
    from pytorch_metric_learning import distances, reducers
    from pytorch_metric_learning import losses as pml

    cosine, length = distances.CosineSimilarity, lambda: distances.LpDistance(normalize_embeddings=False)
    return [
        ("contrastive", {"m_pos": 0.2, "m_neg": 1.1}, pml.ContrastiveLoss(0.2, 1.1, distance=length())),
        (
            "contrastive",
            {"m_pos": 0.5, "m_neg": 2.0, "distance": "squared"},
            pml.ContrastiveLoss(0.5, 2.0, distance=distances.LpDistance(normalize_embeddings=False, power=2)),
        ),
        (
            "contrastive",
            {"m_pos": 0.0, "m_neg": 0.5, "distance": "cosine"},
            pml.ContrastiveLoss(1, 0.5, distance=cosine()),
        ),
        ("triplet", {"m": 0.3}, pml.TripletMarginLoss(0.3, distance=cosine())),
        (
            "triplet",
            {"m": 0.3, "distance": "euclidean", "divisor": "pairs"},
            pml.TripletMarginLoss(0.3, distance=length(), reducer=reducers.MeanReducer()),
        ),
        ("margin", {"alpha": 0.2, "counting": "triplets"}, pml.MarginLoss(0.2, beta=1.2, distance=length())),
        (
            "margin",
            {"alpha": 0.2, "beta": 0.5, "counting": "triplets", "distance": "cosine"},
            pml.MarginLoss(0.2, beta=0.5, distance=cosine()),
        ),
        (
            "lifted_structure",
            {"form": "pairs", "m": 1.0},
            pml.LiftedStructureLoss(neg_margin=1, pos_margin=0, distance=length()),
        ),
        ("nt_xent", {"temperature": 0.3}, pml.NTXentLoss(0.3)),
        ("multi_similarity", {"epsilon": math.inf}, pml.MultiSimilarityLoss(2, 50, 0.5)),
    ]


@in_one_case(index=range(10), labels=list(LABELS.values()))
def test_twins_in_pytorch_metric_learning(index: int, labels: list[int]) -> None:
    name, hyper, twin = twins()[index]  # created late, because importing the library takes seconds
    x, y = batch(labels)
    ours = make(name, **hyper)
    if name == "margin":
        ours.beta.data.fill_(hyper.get("beta", 1.2))
        twin.beta = twin.beta.double().fill_(hyper.get("beta", 1.2))
    found, expected = value_and_gradient(ours, x, y), value_and_gradient(twin, x, y)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    assert found[0] > 0


def test_lifted_structure_over_rows_is_the_generalised_one_where_all_have_positives() -> None:
    from pytorch_metric_learning import distances, reducers
    from pytorch_metric_learning import losses as pml

    twin = pml.GeneralizedLiftedStructureLoss(
        neg_margin=0, pos_margin=0.5, distance=distances.CosineSimilarity(), reducer=reducers.SumReducer()
    )
    x, y = batch(PAIRED)
    ours = value_and_gradient(make("lifted_structure", divisor="one"), x, y)
    torch.testing.assert_close(ours, value_and_gradient(twin, x, y), rtol=1e-12, atol=1e-13)


def test_one_pair_per_class_is_the_n_pairs_loss_on_inner_products() -> None:
    from pytorch_metric_learning import distances
    from pytorch_metric_learning import losses as pml

    twin = pml.NPairsLoss(distance=distances.DotProductSimilarity(normalize_embeddings=False))
    for labels in LABELS.values():
        x, y = batch(labels)
        ours = value_and_gradient(make("n_pair", form="one", l2=0.0), x, y)
        torch.testing.assert_close(ours, value_and_gradient(twin, x, y), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("norms", "power", "divisor"), [("squared", 2, "pairs"), ("mean", 1, "samples")])
def test_one_pair_per_class_is_penalised_by_the_norms_of_its_samples(norms: str, power: int, divisor: str) -> None:
    """Squared norms over the pairs (Sohn 2016, Eq. 10); norms over all samples of the pairs (Can 2018, Eq. 2.22)."""
    for labels in LABELS.values():
        x, y = batch(labels)
        firsts = [[i for i in range(len(y)) if y[i] == c][:2] for c in sorted(set(y.tolist()))]
        pairs = [pair for pair in firsts if len(pair) == 2]
        total = sum(math.dist(x[i].tolist(), [0.0] * x.shape[1]) ** power for pair in pairs for i in pair)
        expected = total / max(len(pairs) * (2 if divisor == "samples" else 1), 1)
        plain, penalised = (float(make("n_pair", form="one", l2=l2, norms=norms)(x, y)) for l2 in (0.0, 0.5))
        assert penalised - plain == pytest.approx(0.5 * expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_mined_multi_similarity_is_the_loss_on_the_pairs_of_the_miner(labels: list[int]) -> None:
    from pytorch_metric_learning import miners

    x, y = batch(labels)
    pairs = miners.MultiSimilarityMiner(0.1)(x, y)
    given = value_and_gradient(make("multi_similarity", epsilon=math.inf), x, y, pairs)
    torch.testing.assert_close(value_and_gradient(make("multi_similarity"), x, y), given, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_the_window_is_the_semi_hard_miner(labels: list[int]) -> None:
    from pytorch_metric_learning import distances, miners

    x, y = batch(labels)
    euclid = distances.LpDistance(normalize_embeddings=False)
    listed = miners.TripletMarginMiner(margin=0.4, distance=euclid, type_of_triplets="semihard")(x, y)
    for m in (0.2, 0.4, 1.0):
        ours = make("triplet", m=m, distance="euclidean", negatives="window", window=0.4)
        plain = make("triplet", m=m, distance="euclidean")
        torch.testing.assert_close(value_and_gradient(ours, x, y), value_and_gradient(plain, x, y, listed))
        assert ours.counts.nonzero == plain.counts.nonzero > 0


def test_ranked_counts_are_those_of_a_loop_also_at_ties() -> None:
    generator = torch.Generator().manual_seed(1)
    d = torch.randint(0, 6, (9, 9), generator=generator) / 10  # many ties: 0.3 + 0.1 against 0.4
    y = torch.randint(0, 3, (9,), generator=generator)
    positive, negative = (y[:, None] == y) & ~torch.eye(9, dtype=torch.bool), y[:, None] != y
    for window, m in itertools.product((None, 0.1, 0.2, 0.3), (-0.1, 0.2)):
        pull, push, valid = count_triplets(d, positive, negative, m, window)
        expected = torch.zeros(2, 9, 9, dtype=torch.int64)
        for a, p, n in itertools.product(range(9), repeat=3):
            inside = window is None or d[a, p] < d[a, n] <= d[a, p] + window
            if positive[a, p] and negative[a, n] and inside and d[a, n] < d[a, p] + m:
                expected[0, a, p] += 1
                expected[1, a, n] += 1
        assert torch.equal(torch.stack([pull, push]), expected)
        assert pull.sum() == push.sum()
        assert (pull.sum() > 0) == (m > 0 or window is None)
        assert valid >= pull.sum()


@pytest.mark.parametrize("negatives", ["semi_hard", "semi_hard_or_farthest", "hardest"])
def test_chosen_negatives_are_those_of_a_loop(negatives: str) -> None:
    x, y = batch(LABELS["uneven"])
    d = torch.cdist(x, x)
    terms = []
    for a, p in itertools.permutations(range(len(y)), 2):
        rivals = [d[a, n] for n in range(len(y)) if y[n] != y[a]]
        if y[a] != y[p]:
            continue
        farther = [r for r in rivals if r > d[a, p]]
        chosen = min(farther) if farther else max(rivals) if negatives == "semi_hard_or_farthest" else None
        chosen = min(rivals) if negatives == "hardest" else chosen
        if chosen is not None:
            terms.append((d[a, p] - chosen + 0.7).relu())
    ours = make("triplet", m=0.7, distance="euclidean", negatives=negatives, divisor="pairs")
    assert ours(x, y).item() == pytest.approx((sum(terms) / len(terms)).item(), rel=1e-12)


def test_quadruplet_is_that_of_a_loop() -> None:
    for labels in LABELS.values():
        x, y = batch(labels)
        d = torch.cdist(x, x).square()
        total = torch.zeros((), dtype=torch.float64)
        count = 0
        for i, j in itertools.permutations(range(len(y)), 2):
            if y[i] != y[j]:
                continue
            count += 1
            near = min(d[i, k] for k in range(len(y)) if y[k] != y[i])
            apart = min(
                d[m, k] for m, k in itertools.permutations(range(len(y)), 2) if len({*y[[i, m, k]].tolist()}) == 3
            )
            total += (d[i, j] - near + 1).relu() + (d[i, j] - apart + 0.5).relu()
        assert make("quadruplet")(x, y).item() == pytest.approx((total / count).item(), rel=1e-12)


PAIR_LOSSES = [name for name in losses.batch_names() if losses.describe(name).pairs]


@in_one_case(name=PAIR_LOSSES)
def test_all_pairs_listed_and_the_batch_as_its_own_reference(name: str) -> None:
    x, y = batch(LABELS["uneven"])
    same = y[:, None] == y
    positive = same & ~torch.eye(len(y), dtype=torch.bool)
    pairs = (*positive.nonzero(as_tuple=True), *(~same).nonzero(as_tuple=True))
    loss = make(name)
    plain = value_and_gradient(loss, x, y)
    counts = loss.counts
    torch.testing.assert_close(value_and_gradient(loss, x, y, pairs), plain, rtol=1e-12, atol=1e-14)
    assert loss.counts == counts
    x = x.clone().requires_grad_()
    against = loss(x, y, pairs, ref_emb=x, ref_labels=y)
    torch.testing.assert_close((against.detach(), torch.autograd.grad(against, x)[0]), plain, rtol=1e-12, atol=1e-14)


@in_one_case(name=PAIR_LOSSES)
def test_a_reference_without_gradient_moves_the_rows_alone(name: str) -> None:
    x, y = batch(LABELS["balanced"])
    memory, remembered = batch(LABELS["uneven"], seed=1)
    memory.requires_grad_()
    value, gradient = value_and_gradient(
        lambda rows: make(name)(rows, y, ref_emb=memory.detach(), ref_labels=remembered), x
    )
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert gradient.any()
    with pytest.raises(ValueError, match="ref_emb needs ref_labels"):
        make(name)(x, y, ref_emb=memory)
    with pytest.raises(ValueError, match="ref_emb must have 6 columns"):
        make(name)(x, y, ref_emb=memory[:, :4], ref_labels=remembered)


def test_listed_triplets_are_pairs_and_triplets() -> None:
    x, y = batch(LABELS["balanced"])
    a, p = next((i, j) for i, j in itertools.permutations(range(12), 2) if y[i] == y[j])
    n = int((y != y[a]).nonzero()[0, 0])
    d = torch.cdist(x, x)
    listed = tuple(torch.tensor([i]) for i in (a, p, n))
    contrastive = make("contrastive", m_pos=0.0, m_neg=9.0)(x, y, listed)
    assert contrastive.item() == pytest.approx((d[a, p] + 9 - d[a, n]).item())
    triplet = make("triplet", m=9.0, distance="euclidean")(x, y, listed)
    assert triplet.item() == pytest.approx((d[a, p] - d[a, n] + 9).item())


def test_forms_that_have_no_place_for_a_memory_say_so() -> None:
    x, y = batch(LABELS["balanced"])
    for name, hyper in (("lifted_structure", {"form": "pairs"}), ("n_pair", {"form": "one"})):
        with pytest.raises(ValueError, match="choose form = "):
            make(name, **hyper)(x, y, ref_emb=x.clone(), ref_labels=y)


def test_a_boundary_is_learned_per_class_or_fixed() -> None:
    x, y = batch(LABELS["balanced"])
    for boundary, size in (("learned", 1), ("per_class", 6), ("fixed", 1)):
        loss = make("margin", boundary=boundary)
        loss(x.requires_grad_(), y).backward()
        assert loss.beta.shape == (size,)
        assert (loss.beta.grad is None) == (boundary == "fixed")
    found = make("margin", boundary="per_class")
    found.beta.data = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=torch.float64)
    for c in range(4):  # rows of a class depend on their own boundary
        listed = [i.flatten() for i in torch.where((y[:, None] == y) & ~torch.eye(12, dtype=torch.bool))]
        rows = [index[y[listed[0]] == c] for index in listed]
        d = torch.cdist(x, x)[rows[0], rows[1]]
        terms = (d - (c + 1) + 0.5).relu()
        none = torch.empty(0, dtype=torch.int64)
        expected = terms.sum() / max(1, int((terms > 0).sum()))
        assert found(x, y, (*rows, none, none)).item() == pytest.approx(expected.item(), rel=1e-9)


@in_one_case(kind=["euclidean", "squared", "cosine", "ball"])
def test_distances_are_exact_and_their_gradients_those_of_autograd(kind: str) -> None:
    x, _ = batch(LABELS["balanced"])
    z = torch.randn(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) / 3
    assert torch.autograd.gradcheck(
        lambda a, b: distance_table(kind, a, b), (x.requires_grad_(), z.requires_grad_()), atol=1e-6
    )


def test_distances_far_from_the_origin_keep_their_digits() -> None:
    near = torch.randn(8, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    far = (near + 1000).float().requires_grad_()
    exact = torch.cdist(far.double(), far.double())
    torch.testing.assert_close(euclidean(far, far).double(), exact, rtol=1e-6, atol=1e-6)
    weight = torch.rand(8, 8, generator=torch.Generator().manual_seed(4))
    (gradient,) = torch.autograd.grad((euclidean(far, far) * weight).sum(), far)
    double = far.detach().double().requires_grad_()
    (expected,) = torch.autograd.grad((torch.cdist(double, double) * weight.double()).sum(), double)
    torch.testing.assert_close(gradient.double(), expected, rtol=1e-4, atol=1e-5)


def test_unit_vectors_of_any_length() -> None:
    x = torch.tensor([[3e30, -4e30], [3e-11, 4e-11], [0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    found = unit(x)
    torch.testing.assert_close(found, torch.tensor([[0.6, -0.8], [0.6, 0.8], [0, 0], [0.6, 0.8]]))
    found.sum().backward()
    assert x.grad.isfinite().all()
    torch.testing.assert_close(unit(x.double()[3:]), F.normalize(x.double()[3:]), rtol=1e-15, atol=0)
