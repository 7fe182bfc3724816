"""Ensembles of losses, rescaled by their running means and weighted by learned coefficients (WEL, WEDL, WEDL-C).

Reference: Zabihzadeh, Alitbi & Mousavirad 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from torch import nn

from dmlcore.catalogue import Choice, Slider, Values
from dmlcore.losses.classification import CrossEntropy
from dmlcore.losses.engine.batch_loss import batch_loss
from dmlcore.losses.engine.ensemble import ORDERS, Coefficients, Compression, DiverseEnsemble, WeightedEnsemble
from dmlcore.losses.hinges import TripletHinge
from dmlcore.losses.pairs import BinomialDeviance, Contrastive, MarginLoss, MultiSimilarity
from dmlcore.losses.proxies import ProxyAnchor, SmoothedProxyNCA, SoftTriple

PRIORS: dict[str, tuple[float, ...]] = {"source": (2 / 8, 1 / 8, 2 / 8, 3 / 8), "equal": (1 / 4,) * 4}


# Possible members of an ensemble, in order. The first four are those of the paper with the settings used there; the
# others have default settings.
MEMBERS: dict[str, Callable[..., nn.Module]] = {
    "classifier": lambda sizes: CrossEntropy(1.0, 0.15, "all", **sizes),
    "triplet": lambda sizes: TripletHinge(1.0, "euclidean", "window", 0.1, "nonzero"),
    "binomial": lambda sizes: BinomialDeviance(2.0, 0.5, 25.0),
    "proxy_nca": lambda sizes: SmoothedProxyNCA(3.0, 0.1, **sizes),
    "contrastive": lambda sizes: Contrastive(),
    "multi_similarity": lambda sizes: MultiSimilarity(),
    "margin": lambda sizes: MarginLoss(classes=sizes["classes"]),
    "proxy_anchor": lambda sizes: ProxyAnchor(**sizes),
    "soft_triple": lambda sizes: SoftTriple(**sizes),
}
# initial weights of the paper, in eighths; members that are not listed get 2
SOURCE_SHARES = {"classifier": 2, "triplet": 1, "binomial": 2, "proxy_nca": 3}


def members(
    classes: int, embedding_dim: int, names: Sequence[str] = tuple(SOURCE_SHARES), classifier_dim: int = 0
) -> list[nn.Module]:
    """Create the member losses of an ensemble, given their names in MEMBERS.

    The default members are a classifier with smoothed targets, a triplet hinge on semi-hard triplets, binomial deviance
    and a smoothed Proxy-NCA.

    Args:
        classes: Number of classes.
        embedding_dim: Dimension of the embeddings that the members read.
        names: Names of the members, keys of MEMBERS.
        classifier_dim: Dimension of the features that the classifier reads, or 0 if it reads the embedding.
    """
    sizes = {"classes": classes, "embedding_dim": embedding_dim}
    own = sizes | {"embedding_dim": classifier_dim or embedding_dim}
    return [MEMBERS[name](own if name == "classifier" else sizes) for name in names]


def initial_weights(prior: str, names: Sequence[str]) -> list[float]:
    """Return one initial weight per member; the weights sum to 1.

    Args:
        prior: "equal" for equal weights, or "source" for the proportions in the paper (`SOURCE_SHARES`).
        names: Names of the members.
    """
    shares = [1 if prior == "equal" else SOURCE_SHARES.get(name, 2) for name in names]
    return [share / sum(shares) for share in shares]


Prior = Annotated[str, Choice(tuple(PRIORS), "w_0", "Initial weights: 2, 1, 2, 3 eighths (source), or equal")]
Eta = Annotated[
    float, Slider(1, 1e4, r"\eta", "Strength of the penalty that keeps the sum of the weights at 1", log=True, above=0)
]
Rate = Annotated[float, Slider(0.1, 1, "s", "Rate of the running means: 1 is the mean of all steps", above=0)]
Weights = Annotated[
    str, Choice(("learned", "fixed"), "w", "Learn the weights of the losses, or keep their initial values (Eq. 10)")
]
WeightsRate = Annotated[
    str,
    Choice(("loss", "network"), r"\mu_w", "Learning rate of the weights: that of the loss, or of the network (source)"),
]
Order = Annotated[
    str,
    Choice(ORDERS, r"\bar\ell", "Update the running means before dividing the losses of a step by them, or afterwards"),
]
Member = Annotated[str, Choice(("on", "off"), r"\ell_j", "Include this loss, with its defaults, in the ensemble")]
SOURCE = "Zabihzadeh, Alitbi & Mousavirad 2021, Eq. 8-15"


def _chosen(values: Values) -> int:
    return sum(values.get(name) == "on" for name in MEMBERS)


def _several(values: Values) -> str:
    return "" if _chosen(values) > 1 else f"needs two losses; set another of {', '.join(MEMBERS)} to on"


def _fed(values: Values) -> str:
    if values.get("classifier_input") != "features":
        return _several(values)
    if values.get("classifier") == "off":
        return "classifier_input: the classifier is off; set classifier to on, or classifier_input to embedding"
    if values.get("pooled_dim") == 0:
        return (
            "classifier_input: this network has no features before its embedding; choose pooling.name=gap, or set "
            "classifier_input to embedding"
        )
    return _several(values)


def _blocks(values: Values) -> str:
    count = _chosen(values)
    size = values.get("embedding_dim", count)
    if count < 2 or not size % count:
        return _several(values)
    return f"each of {count} losses has a block of the embedding, so embedding_dim must divide by {count}, got {size}"


def _parts(
    prior: Prior = "source",
    eta: Eta = 100.0,
    rate: Rate = 1.0,
    weights: Weights = "learned",
    weights_rate: WeightsRate = "loss",
    order: Order = "update_first",
    classifier: Member = "on",
    triplet: Member = "on",
    binomial: Member = "on",
    proxy_nca: Member = "on",
    contrastive: Member = "off",
    multi_similarity: Member = "off",
    margin: Member = "off",
    proxy_anchor: Member = "off",
    soft_triple: Member = "off",
    *,
    classes: int,
    embedding_dim: int,
    blocks: bool = False,
    classifier_dim: int = 0,
) -> dict[str, Any]:
    """Return the arguments of `Ensemble` from the hyper-parameters that all ensembles share.

    `blocks` is True if each member reads its own block of the embedding. `classifier_dim` is the dimension of the
    features that the classifier reads, or 0 if it reads the embedding.
    """
    switches = (
        *(classifier, triplet, binomial, proxy_nca, contrastive, multi_similarity, margin, proxy_anchor, soft_triple),
    )
    names = [name for name, switch in zip(MEMBERS, switches, strict=True) if switch == "on"]
    shares = initial_weights(prior, names)
    coefficients = Coefficients(shares, eta, learned=weights == "learned", at_network_rate=weights_rate == "network")
    learners = members(classes, embedding_dim // len(names) if blocks else embedding_dim, names, classifier_dim)
    return {
        **{"members": learners, "prior": shares, "eta": eta, "rate": rate},
        **{"names": names, "weights": coefficients, "order": order},
    }


@batch_loss(
    "wel",
    title="Weighted ensemble (WEL)",
    latex=r"\sum_j w_j\,\ell_j\,\bar\ell/\bar\ell_j + \eta\bigl(\textstyle\sum_j w_j-1\bigr)^2,"
    r"\quad w_j=c_j^2+\tfrac1{4M}",
    source=SOURCE,
    sentence="Several losses on one embedding, brought to one scale, with learned weights. By default a classifier, "
    "a triplet hinge, binomial deviance and Proxy-NCA.",
    rule=_fed,
    shared=_parts,
)
def _wel(
    classifier_input: Annotated[
        str,
        Choice(
            ("embedding", "features"),
            r"\phi",
            "Input of the classifier: the embedding, or the features before it (source, Fig. 9)",
        ),
    ] = "embedding",
    *,
    classes: int,
    embedding_dim: int,
    pooled_dim: int = 0,
    **shared: Any,
) -> WeightedEnsemble:
    on_features = classifier_input == "features"
    own = pooled_dim if on_features else 0
    parts = _parts(**shared, classes=classes, embedding_dim=embedding_dim, classifier_dim=own)
    return WeightedEnsemble(**parts, reads_pooled=on_features)


@batch_loss(
    "wedl",
    title="Weighted ensemble, diverse (WEDL)",
    latex=r"\sum_j w_j\,\ell_j(f_j)\,\bar\ell/\bar\ell_j + \eta\bigl(\textstyle\sum_j w_j-1\bigr)^2"
    r" + \lambda\,\bigl[2-\operatorname{mean}\lVert f_j-f_k\rVert^2\bigr]_+",
    source=SOURCE,
    sentence="Each of several losses trains its own block of the embedding. The blocks are kept apart, and weighted in "
    "the distance.",
    rule=_blocks,
    shared=_parts,
)
def _wedl(
    diversity: Annotated[
        float, Slider(0, 1, r"\lambda", "Weight of the hinge that keeps the blocks apart", least=0)
    ] = 0.01,
    compression: Annotated[
        str,
        Choice(
            ("off", "on"), "g", "Also learn an embedding with the size of one block that preserves distances (WEDL-C)"
        ),
    ] = "off",
    distance: Annotated[
        str,
        Choice(
            ("squared", "euclidean"),
            "D",
            "Distance between blocks in the hinge; the released code uses unsquared distances",
        ),
    ] = "squared",
    *,
    classes: int,
    embedding_dim: int,
    **shared: Any,
) -> DiverseEnsemble:
    # Create the members before the compression, so that their random initialisation does not depend on it.
    parts = _parts(**shared, classes=classes, embedding_dim=embedding_dim, blocks=True)
    count = len(parts["members"])
    network = Compression(count, embedding_dim // count) if compression == "on" else None
    return DiverseEnsemble(**parts, diversity=diversity, compression=network, squared=distance == "squared")
