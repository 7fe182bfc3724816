"""Table of the similarities on which weights of pair losses depend, computed and as printed in Psomas 2020, Table 1."""

from __future__ import annotations

from collections.abc import Mapping

from dmlcore import losses
from dmlcore.loss_analysis import similarity_types

PRINTED: Mapping[str, str] = {  # Psomas 2020, Table 1: kinds of similarity marked for each loss
    "contrastive": "S",
    "triplet": "P",
    "lifted_structure": "N",
    "n_pair": "N",
    "multi_similarity": "S, N, P",
}


def lines() -> list[str]:
    """Return the section on the similarities on which the weights of pair losses depend."""
    page = [
        "",
        "## Weights of pair losses",
        "",
        "Similarities on which the weight of a negative pair depends, as in Psomas 2020, Table 1 (after Wang et al. "
        "2019): self (S), of other negative pairs of the anchor (N), and of its positive pairs (P). Computed by "
        "autograd for the default hyper-parameters (`dmlcore.loss_analysis.similarity_types`). Smooth: the weight "
        "follows small changes; threshold: it changes only where a term or a mined pair is switched on or off.",
        "",
        "| loss | name | S | N | P | printed |",
        "|:--|:--|:-:|:-:|:-:|:--|",
    ]
    words = {"none": "–"}
    for name in similarity_types.pair_losses():
        kinds = [words.get(each, each) for each in similarity_types.dependence(name).values()]
        title, printed = losses.describe(name).title, PRINTED.get(name, "")
        page.append(f"| {title} | `{name}` | {' | '.join(kinds)} | {printed} |")
    different = [losses.describe(name).title for name in PRINTED if _types(name) != PRINTED[name]]
    return [*page, "", f"Different from the printed table: {', '.join(different) or 'none'} (see the errata)."]


def _types(name: str) -> str:
    """Return the letters of the kinds of similarity on which a loss depends, such as "S, N"."""
    return ", ".join(kind[0].upper() for kind, how in similarity_types.dependence(name).items() if how != "none")
