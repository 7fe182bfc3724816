"""Ensembles of losses: rescaled by their running means, weighted by learned coefficients, on one embedding or several.

Source: Zabihzadeh, Alitbi & Mousavirad 2021 (WEL, WEDL, WEDL-C).
"""

from __future__ import annotations

from typing import Annotated

from torch import nn

from dmlcore.catalogue import Choice, Slider, Values
from dmlcore.losses.classification import CrossEntropy
from dmlcore.losses.engine.batch_loss import batch_loss
from dmlcore.losses.engine.ensemble import Compression, DiverseEnsemble, WeightedEnsemble
from dmlcore.losses.hinges import TripletHinge
from dmlcore.losses.pairs import BinomialDeviance
from dmlcore.losses.proxies import SmoothedProxyNCA

PRIORS: dict[str, tuple[float, ...]] = {"source": (2 / 8, 1 / 8, 2 / 8, 3 / 8), "equal": (1 / 4,) * 4}


def members(classes: int, embedding_dim: int) -> list[nn.Module]:
    """Smoothed classifier, triplet hinge on semi-hard triplets, binomial deviance, smoothed Proxy-NCA."""
    sizes = {"classes": classes, "embedding_dim": embedding_dim}
    return [
        CrossEntropy(1.0, 0.15, "all", **sizes),
        TripletHinge(1.0, "euclidean", "window", 0.1, "nonzero"),
        BinomialDeviance(2.0, 0.5, 25.0),
        SmoothedProxyNCA(3.0, 0.1, **sizes),
    ]


Prior = Annotated[str, Choice(tuple(PRIORS), "w_0", "Weights at the start: 2, 1, 2, 3 eighths (source), or all alike")]
Eta = Annotated[float, Slider(1, 1e4, r"\eta", "How firmly the weights are held to a sum of 1", log=True, above=0)]
Rate = Annotated[float, Slider(0.1, 1, "s", "Rate of the running means: 1 is the mean of all steps", above=0)]
SOURCE = "Zabihzadeh, Alitbi & Mousavirad 2021, Eq. 8-15"


@batch_loss(
    "wel",
    title="Weighted ensemble (WEL)",
    latex=r"\sum_j w_j\,\ell_j\,\bar\ell/\bar\ell_j + \eta\bigl(\textstyle\sum_j w_j-1\bigr)^2,"
    r"\quad w_j=c_j^2+\tfrac1{4M}",
    source=SOURCE,
    sentence="Classifier, triplet hinge, binomial deviance and Proxy-NCA on one embedding, brought to one scale, with "
    "learned weights.",
)
def _wel(
    prior: Prior = "source", eta: Eta = 100.0, rate: Rate = 1.0, *, classes: int, embedding_dim: int
) -> WeightedEnsemble:
    return WeightedEnsemble(members(classes, embedding_dim), PRIORS[prior], eta, rate)


def _four_blocks(values: Values) -> str:
    size = values.get("embedding_dim", 4)
    return f"the embedding is four blocks, so embedding_dim must divide by 4, got {size}" if size % 4 else ""


@batch_loss(
    "wedl",
    title="Weighted ensemble, diverse (WEDL)",
    latex=r"\sum_j w_j\,\ell_j(f_j)\,\bar\ell/\bar\ell_j + \eta\bigl(\textstyle\sum_j w_j-1\bigr)^2"
    r" + \lambda\,\bigl[2-\operatorname{mean}\lVert f_j-f_k\rVert^2\bigr]_+",
    source=SOURCE,
    sentence="Each of the four losses trains a quarter of the embedding; the quarters are kept apart and weighted for "
    "the distance.",
    rule=_four_blocks,
)
def _wedl(
    prior: Prior = "source",
    eta: Eta = 100.0,
    rate: Rate = 1.0,
    diversity: Annotated[
        float, Slider(0, 1, r"\lambda", "Weight of the hinge that keeps the quarters apart", least=0)
    ] = 0.01,
    compression: Annotated[
        str, Choice(("off", "on"), "g", "Learn a quarter as long beside, that keeps the distances (WEDL-C)")
    ] = "off",
    *,
    classes: int,
    embedding_dim: int,
) -> DiverseEnsemble:
    width = embedding_dim // 4
    learners = members(classes, width)  # drawn first, so that they start alike with and without a compression
    network = Compression(4, width) if compression == "on" else None
    return DiverseEnsemble(learners, PRIORS[prior], eta, rate, diversity, network)
