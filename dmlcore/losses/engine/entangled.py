"""Fully entangled form of a triplet loss: each anchor-positive pair enters one term with all of its negatives."""

from __future__ import annotations

import torch
from torch import Tensor

from dmlcore.geometry import Triplet
from dmlcore.losses.engine.table import Blocks, Counts, Energy, TripletBlock


def entangled_mean(
    distances: Tensor, norms: Tensor, blocks: Blocks, energy: Energy, margin: float, floor: float
) -> tuple[Tensor, Counts]:
    """Return the mean over pairs (a, p) of log(1 + sum_n exp(E(a, p, n) + margin)), and the counts of the triplets.

    Nearer negatives take a larger share of the force of their pair. All triplets are kept in memory for the
    gradient, and all count as active, because the form has no clamp.

    Args:
        distances: Distances from `pair_tables`, shape (B, B).
        norms: Squared norms from `pair_tables`, shape (B,).
        blocks: Function that returns the blocks of triplets.
        energy: Energy as a function of a `Triplet`, without the margin.
        margin: Margin that is added to the energy.
        floor: Distance below which diverging forces are frozen, see `Triplet`.

    Reference:
        Karaman 2021, Sec. 5.3 suggests a form as in Sohn 2016, the N-pair loss, for the losses of the thesis. For
        `facenet` with m = 0 and unit vectors it is the N-pair loss of the embeddings times the square root of 2.
    """
    raws, pairs = [], []
    count = torch.zeros((), dtype=torch.int64, device=distances.device)
    for block in blocks(False):
        raw = energy(_triplet(distances, norms, block, floor)) + margin
        valid = block.valid.expand_as(raw)
        a, p = block.edges["ap"]
        raws.append(raw[valid])
        pairs.append((a * len(norms) + p).expand_as(raw)[valid])
        count += block.copies * valid.count_nonzero()
    counts = Counts.of(count, count, count)
    if not raws:
        return (distances.sum() + norms.sum()) * 0, counts
    raw, (_, pair) = torch.cat(raws), torch.unique(torch.cat(pairs), return_inverse=True)
    return _log1p_sum_exp(raw, pair).mean() if len(raw) else raw.sum(), counts


def _triplet(distances: Tensor, norms: Tensor, block: TripletBlock, floor: float) -> Triplet:
    """Return the triplets of a block as entries of the tables, with their graph."""
    return Triplet(lambda pair: distances[block.edges[pair]], lambda vertex: norms[block.vertices[vertex]], floor)


def _log1p_sum_exp(values: Tensor, group: Tensor) -> Tensor:
    """Compute log(1 + sum(exp(values))) of each group, without overflow; `group` numbers the groups from 0."""
    zeros = values.new_zeros(int(group.max()) + 1)
    largest = zeros.scatter_reduce(0, group, values.detach(), "amax")
    return largest + ((-largest).exp().index_add(0, group, (values - largest[group]).exp())).log()
