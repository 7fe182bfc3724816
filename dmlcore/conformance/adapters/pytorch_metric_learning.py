"""Calls of pytorch-metric-learning for each conformance case of a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dmlcore.conformance.case import Computation, Outcome, evaluate_module
from dmlcore.conformance.proxy_losses import CENTRES, centres, unit_weights
from dmlcore.conformance.vectors import Vector


def parts() -> Any:
    """Import pytorch-metric-learning with all subpackages that the adapters use, and return it."""
    import pytorch_metric_learning as pml
    import pytorch_metric_learning.distances
    import pytorch_metric_learning.losses
    import pytorch_metric_learning.miners
    import pytorch_metric_learning.reducers
    import pytorch_metric_learning.regularizers
    import pytorch_metric_learning.samplers

    return pml


def loss(make: Callable[[Any], nn.Module]) -> Computation:
    """Return a function that evaluates a loss without class weights; `make` creates the loss from the library."""
    return lambda v: evaluate_module(make(parts()).double(), v)


def learned(
    weights: str,
    make: Callable[[Any, int, int], nn.Module],
    given: Callable[[Vector], Tensor] = lambda v: v.proxies,
) -> Computation:
    """Return a function that evaluates a loss with given class weights.

    Args:
        weights: Name of the loss parameter that holds the class weights.
        make: Function that creates the loss from the library, the number of classes and the dimension.
        given: Function that returns the class weights to use for a batch, by default its proxies.
    """

    def computed(v: Vector) -> Outcome:
        return evaluate_module(make(parts(), v.classes, v.embeddings.shape[1]), v, weights, given(v))

    return computed


def margin(v: Vector) -> Outcome:
    """Compute the library's margin loss with its parameter for the boundary (beta) converted to float64.

    In float32 the comparison would include rounding errors of this parameter.
    """
    module = parts().losses.MarginLoss(margin=0.2, beta=1.2)
    module.beta = torch.tensor([1.2], dtype=torch.float64)
    return evaluate_module(module, v)


def mined(v: Vector) -> Outcome:
    """Compute the library's multi-similarity loss on the pairs that its multi-similarity miner selects."""
    pml = parts()
    pairs = pml.miners.MultiSimilarityMiner(0.1)(v.embeddings, v.labels)
    return evaluate_module(pml.losses.MultiSimilarityLoss(2, 50, 0.5), v, "", None, pairs)


def soft_triple(p: Any, c: int, d: int) -> nn.Module:
    """Create the library's soft triple loss and its regulariser, which is a separate class in the library."""
    module: nn.Module = p.losses.SoftTripleLoss(
        c,
        d,
        centers_per_class=CENTRES,
        la=20,
        gamma=0.1,
        margin=0.1,
        weight_regularizer=p.regularizers.SparseCentersRegularizer(c, CENTRES),
        weight_reg_weight=0.2,
    )
    return module


LOSSES: dict[str, Computation] = {
    "contrastive": loss(lambda p: p.losses.ContrastiveLoss(0.2652, 0.5409)),
    "threshold_consistent": loss(lambda p: p.losses.ThresholdConsistentMarginLoss(margin_plus=0.7, margin_minus=0.2)),
    "triplet": loss(lambda p: p.losses.TripletMarginLoss(0.119)),
    "triplet_all": loss(lambda p: p.losses.TripletMarginLoss(0.119, reducer=p.reducers.MeanReducer())),
    "triplet_cosine": loss(
        lambda p: p.losses.TripletMarginLoss(
            0.1, distance=p.distances.CosineSimilarity(), reducer=p.reducers.MeanReducer()
        )
    ),
    "triplet_swap": loss(lambda p: p.losses.TripletMarginLoss(0.3, swap=True, reducer=p.reducers.MeanReducer())),
    "triplet_soft": loss(lambda p: p.losses.TripletMarginLoss(0, smooth_loss=True, reducer=p.reducers.MeanReducer())),
    "margin": margin,
    "lifted": loss(lambda p: p.losses.LiftedStructureLoss(neg_margin=1)),
    "lifted_rows": loss(
        lambda p: p.losses.GeneralizedLiftedStructureLoss(
            neg_margin=0, pos_margin=0.5, distance=p.distances.CosineSimilarity(), reducer=p.reducers.SumReducer()
        )
    ),
    "n_pairs": loss(
        lambda p: p.losses.NPairsLoss(distance=p.distances.DotProductSimilarity(normalize_embeddings=False))
    ),
    "nt_xent": loss(lambda p: p.losses.NTXentLoss(0.3)),
    "supervised_contrastive": loss(lambda p: p.losses.SupConLoss(0.3)),
    "multi_similarity": loss(lambda p: p.losses.MultiSimilarityLoss(2, 50, 0.5)),
    "multi_similarity_mined": mined,
    "angular": loss(lambda p: p.losses.AngularLoss(40)),
    "circle": loss(lambda p: p.losses.CircleLoss(0.4, 80)),
    "tuplet_margin": loss(lambda p: p.losses.TupletMarginLoss(5.73, 64)),
    "neighbours": loss(lambda p: p.losses.NCALoss()),
    "fast_ap": loss(lambda p: p.losses.FastAPLoss(10)),
    "smooth_ap": loss(lambda p: p.losses.SmoothAPLoss(0.1)),
    "ranked_list": loss(lambda p: p.losses.RankedListLoss(margin=0.4, Tn=2.0, alpha=1.2)),
    "histogram": loss(lambda p: p.losses.HistogramLoss(n_bins=20)),
    "proxy_nca": learned("proxies", lambda p, c, d: p.losses.ProxyNCALoss(c, d)),
    "normalised_softmax": learned("W", lambda p, c, d: p.losses.NormalizedSoftmaxLoss(c, d, temperature=0.11)),
    "proxy_anchor": learned("proxies", lambda p, c, d: p.losses.ProxyAnchorLoss(c, d)),
    "soft_triple": learned(
        "fc",
        lambda p, c, d: p.losses.SoftTripleLoss(c, d, centers_per_class=CENTRES, la=20, gamma=0.1, margin=0.1),
        centres,
    ),
    "soft_triple_regularised": learned("fc", soft_triple, centres),
    "arcface": learned("W", lambda p, c, d: p.losses.ArcFaceLoss(c, d, margin=28.6, scale=8)),
    "sub_centre_arcface": learned(
        "W",
        lambda p, c, d: p.losses.SubCenterArcFaceLoss(
            num_classes=c, embedding_size=d, margin=28.6, scale=8, sub_centers=CENTRES
        ),
        centres,
    ),
    "cosface": learned("W", lambda p, c, d: p.losses.CosFaceLoss(c, d, margin=0.35, scale=8)),
    "large_margin_softmax": learned("W", lambda p, c, d: p.losses.LargeMarginSoftmaxLoss(c, d, margin=4)),
    "sphereface": learned("W", lambda p, c, d: p.losses.SphereFaceLoss(c, d, margin=4)),
    "p2s_grad": learned("weight", lambda p, c, d: p.losses.P2SGradLoss(d, c), unit_weights),
}
