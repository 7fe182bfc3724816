"""Wrappers of pytorch-metric-learning accept losses and miners and compute the same results."""

from __future__ import annotations

import torch
import torch.distributed as dist
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from pytorch_metric_learning.losses import CrossBatchMemory, MultipleLosses, SelfSupervisedLoss
from pytorch_metric_learning.miners import TripletMarginMiner
from pytorch_metric_learning.utils.distributed import DistributedLossWrapper, DistributedMinerWrapper
from torch import Tensor, nn

from dmlcore import interop, losses, mining
from tests.members import in_one_case

# Variants that take no reference embeddings raise an error, see tests/losses/test_pairs.py.
OF_TUPLES = [name for name, entry in losses.LOSSES.items() if mining.fits("semi_hard", entry) or hasattr(entry, "core")]


def batch(size: int = 24, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, 8, generator=generator), torch.randint(0, 4, (size,), generator=generator)


def make_loss(name: str) -> nn.Module:
    torch.manual_seed(0)
    return losses.for_training(name, classes=5, embedding_dim=8)


@in_one_case(name=OF_TUPLES)
def test_a_cross_batch_memory_compares_a_batch_with_the_memory(name: str) -> None:
    memory, (before, old), (x, y) = CrossBatchMemory(interop.pml_loss(make_loss(name)), 8, 48), batch(), batch(seed=1)
    memory(before, old)
    value = memory(x.requires_grad_(), y)
    columns, labels = torch.cat([before, x.detach()]), torch.cat([old, y])
    same, own = y[:, None] == labels, torch.eye(24, 48, dtype=torch.bool).roll(24, 1)
    pairs = *(same & ~own).nonzero(as_tuple=True), *(~same).nonzero(as_tuple=True)
    torch.testing.assert_close(value, make_loss(name)(x, y, pairs, columns, labels))
    assert torch.autograd.grad(value, x)[0].any()


@in_one_case(name=OF_TUPLES)
def test_labels_are_not_needed_beside_tuples(name: str) -> None:
    x, y = batch()
    for tuples in (mining.create("multi_similarity")(x, y), mining.create("batch_hard")(x, y)):
        if name != "quadruplet":  # the quadruplet loss compares the classes of negatives
            assert torch.equal(make_loss(name)(x, None, tuples), make_loss(name)(x, y, tuples))
            assert torch.equal(make_loss(name)(x, None, tuples, ref_emb=x), make_loss(name)(x, y, tuples, x, y))


@in_one_case(name=losses.names())
def test_a_reference_gives_the_triplets_that_lie_in_it(name: str) -> None:
    (x, y), (columns, labels) = batch(6), batch(9, seed=1)
    positive = y[:, None] == labels
    listed = (positive[:, :, None] & ~positive[:, None]).nonzero(as_tuple=True)
    loss = make_loss(name)
    value, counts = loss(x, y, ref_emb=columns, ref_labels=labels), loss.counts
    torch.testing.assert_close(value, loss(x, None, listed, columns))
    assert counts == loss.counts
    a, p, n = listed
    torch.testing.assert_close(value, loss.clamped(x[a], columns[p], columns[n]).mean())


def test_self_supervised_and_multiple_losses() -> None:
    (x, _), (other, _), each = batch(12), batch(12, seed=1), torch.arange(12)
    for name in ("ranking", "contrastive", "nt_xent"):
        loss = interop.pml_loss(make_loss(name))
        assert torch.equal(SelfSupervisedLoss(loss)(x, other), make_loss(name)(torch.cat([x, other]), each.repeat(2)))
        alone = SelfSupervisedLoss(loss, symmetric=False)(x, other)
        assert torch.equal(alone, make_loss(name)(x, each, ref_emb=other, ref_labels=each))
    x, y = batch()
    names, miner = ("ranking", "proxy_anchor"), mining.create("batch_hard")
    together = MultipleLosses([make_loss(name) for name in names], miners=[miner, mining.create("all")])(x, y)
    assert torch.equal(together, make_loss(names[0])(x, y, miner(x, y)) + make_loss(names[1])(x, y))


def test_distributed_wrappers() -> None:
    (x, y), miner = batch(), mining.create("batch_hard")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        mined = DistributedMinerWrapper(interop.pml_miner(miner))(x, y)
        for name in ("ranking", "contrastive", "proxy_anchor", "facility_location", "wel"):
            wrapped = DistributedLossWrapper(interop.pml_loss(make_loss(name)))(x, y, mined)
            assert torch.equal(wrapped, make_loss(name)(x, y, miner(x, y)))
    finally:
        dist.destroy_process_group()


def test_miners_state_and_use_their_distance() -> None:
    x, y = batch()
    theirs = {"euclidean": LpDistance(normalize_embeddings=False), "unit": LpDistance(), "cosine": CosineSimilarity()}
    for name, distance in theirs.items():
        miner = mining.create("semi_hard_window", margin=0.2, distance=name)
        mined = interop.pml_miner(miner)(x, y)
        expected = TripletMarginMiner(0.2, type_of_triplets="semihard", distance=distance)(x, y)
        assert {*zip(*(i.tolist() for i in mined), strict=True)} == {*zip(*(i.tolist() for i in expected), strict=True)}
        assert (miner.distance, miner.num_triplets, miner.num_pairs) == (name, len(mined[0]), 0)
        columns, labels = batch(30, seed=1)
        mined, expected = (
            miner(x, y, columns, labels),
            TripletMarginMiner(0.2, "semihard", distance=distance)(x, y, columns, labels),
        )
        assert {*zip(*(i.tolist() for i in mined), strict=True)} == {*zip(*(i.tolist() for i in expected), strict=True)}
