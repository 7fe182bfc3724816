"""State of the Pair weights page, parsed from untrusted URLs and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from dmlcore.loss_analysis.pair_weights import Rival
from pages.shared.state.page_state import ChoiceKind, NumberKind, Numbers, PageState, Preset
from pages.shared.state.panel import Panel, Panels, panel

NEAREST = 0.995  # largest similarity, in absolute value, that distinct points can have on this page

PAIRS = {"ap": "a–p, the positive pair", "an": "a–n, the negative pair", "pn": "p–n, positive and negative"}
SLOPES = {"S": "slope by similarity, dL/dS", "d": "slope by distance, dL/dd"}
SCALES = {"signed": "signed: attracts or repels", "size": "magnitude only"}
LYING: Mapping[Rival, str] = {
    "perpendicular": "at 90° to P",
    "symmetric": "equally near to P and A",
    "fixed": "at a fixed similarity to P",
}
DEFAULTS = (panel("ranking"), panel("facenet"))


@dataclass(frozen=True)
class PairWeightsView(PageState):
    """Two losses with pair weights to compare.

    Attributes:
        panels: The two losses with their parameters.
        weight: Pair with the weight to draw.
        by: Variable of the derivative: "S" for dL/dS, "d" for dL/dd.
        scale: Colour scale for signed weights or for their magnitudes.
        rival: Position of the negative relative to P.
        pn: S_pn if rival = "fixed".
        at: (S_ap, S_an) of the triplet for which values are shown.
    """

    panels: Annotated[tuple[Panel, ...], Panels(DEFAULTS)] = DEFAULTS
    weight: Annotated[str, ChoiceKind(PAIRS, always=True)] = "an"
    by: Annotated[str, ChoiceKind(SLOPES)] = "S"
    scale: Annotated[str, ChoiceKind(SCALES)] = "signed"
    rival: Annotated[Rival, ChoiceKind(LYING)] = "perpendicular"
    pn: Annotated[float, NumberKind(-NEAREST, NEAREST)] = 0.0
    at: Annotated[tuple[float, float], Numbers(NEAREST)] = (0.5, 0.6)


SLIDES = (  # a URL without parameters opens the first preset
    Preset(
        "METU against N-pairs",
        "METU's push grows like 1/d³ until the upper clamp sets it to 0. The push of N-pairs (softmax) stays below 1. "
        "Both maps share one colour scale; METU's strongest push exceeds it.",
        "l1=distance_sensitive&l2=npairs&weight=an",
    ),
    Preset(
        "Ranking against FaceNet",
        "By similarity, FaceNet weights every active pair equally (±2); ranking weights close pairs most (1/d).",
        "weight=an",
    ),
    Preset(
        "Hinge against soft-max",
        "The hinge acts on one side of a line only; the original triplet loss fades but never becomes zero.",
        "l2=hoffer&weight=ap",
    ),
    Preset(
        "All against semi-hard",
        "Equal weights, but the second loss drops the hardest negatives, which are closer to the anchor than the "
        "positive.",
        "l1=facenet,m:0.2&l2=facenet_mined&weight=an",
    ),
    Preset(
        "Pushing the positive",
        "The pair p–n, which classical triplet losses ignore: lifted splits one push, entangled pushes both ends.",
        "l1=lifted&l2=entangle,m:2.5&weight=pn&rival=fixed&pn=0.3",
    ),
)
