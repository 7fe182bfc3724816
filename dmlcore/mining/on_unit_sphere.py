"""Miners on the unit sphere: hard pairs by cosine, and negatives sampled by distance."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Slider
from dmlcore.mining.base import Pairs, Triplets, miner


@miner("Multi-similarity (hard pairs)", "Wang et al. 2019 (multi-similarity), Eq. 11-12", gives="pairs", table="cosine")
def multi_similarity(
    cosines: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    epsilon: Annotated[float, Slider(0.0, 1.0, r"\epsilon", "slack: larger keeps more pairs", above=-2.0)] = 0.1,
) -> Pairs:
    """Select hard pairs by cosine similarity.

    A positive is kept if it is less similar than the most similar negative plus epsilon, a negative if it is more
    similar than the least similar positive minus epsilon.
    """
    closest_negative = cosines.masked_fill(~negative, -torch.inf).amax(1, keepdim=True)
    farthest_positive = cosines.masked_fill(~positive, torch.inf).amin(1, keepdim=True)
    a1, positives = (positive & (cosines - epsilon < closest_negative)).nonzero(as_tuple=True)
    a2, negatives = (negative & (cosines + epsilon > farthest_positive)).nonzero(as_tuple=True)
    return a1, positives, a2, negatives


@miner("Distance weighted", "Wu et al. 2017 (sampling matters), Sec. 4", table="unit distance", random=True)
def distance_weighted(
    distances: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    dimension: int,
    generator: torch.Generator | None = None,
    cutoff: Annotated[float, Slider(0.1, 1.0, "d_0", "distances below this one count as this one", above=0.0)] = 0.5,
    farthest: Annotated[float, Slider(0.5, 2.0, "d_1", "negatives from here on are never drawn", above=0.0)] = 1.4,
) -> Triplets:
    """Draw one negative per pair so that all distances are about equally likely.

    Points near the anchor are rare on a sphere and are therefore drawn more often. Pairs whose negatives are all too
    far away are dropped.
    """
    d = distances.double().clamp(min=cutoff)
    # Logarithm of 1 / q(d), where q is the density of distances between random points on the unit sphere in
    # R^dimension.
    log_weights = (2 - dimension) * d.log() - (dimension - 3) / 2 * torch.log1p(-(d.clamp(max=2) ** 2) / 4)
    allowed = negative & (d < min(farthest, 2.0))
    log_weights = log_weights.masked_fill(~allowed, -torch.inf)
    weights = (log_weights - log_weights.amax(1, keepdim=True).clamp(min=torch.finfo(d.dtype).min)).exp()
    until = weights.cumsum(1)
    # Draw on the device of the generator, so that the result does not depend on the device of the distances.
    uniform = torch.rand(d.shape, dtype=d.dtype, generator=generator, device=generator.device if generator else "cpu")
    drawn = torch.searchsorted(until, uniform.to(d.device) * until[:, -1:], right=True)
    anchors, positives = (positive & allowed.any(1, keepdim=True)).nonzero(as_tuple=True)
    # Because of rounding errors in the cumulative sum, the drawn column may lie after the last allowed negative.
    last = torch.where(allowed, torch.arange(d.shape[1], device=d.device), -1).amax(1)
    negatives = torch.minimum(drawn[anchors, positives], last[anchors])
    return anchors, positives, negatives
