"""Display settings of the Thresholds page, stored in the URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pages.shared.state.page_state import ChoiceKind, NumberKind, PageState

RATES = (0.1, 0.05, 0.02, 0.01, 0.005, 0.001)  # false match rates for which a threshold is recommended
RECOMMENDED = 2.0  # value of `t` that stands for the recommended threshold
SIDES = {"unseen": "unseen classes", "seen": "seen classes"}
ORDERS = {"worst": "worst first", "near": "nearest to the threshold"}
CURVES = {"fmr": "false matches", "fnmr": "missed matches"}


@dataclass(frozen=True)
class ThresholdLook(PageState):
    """Display settings of the Thresholds page."""

    t: Annotated[float, NumberKind(-1.0, RECOMMENDED)] = RECOMMENDED  # threshold of the cosine similarity
    fmr: Annotated[str, ChoiceKind([f"{rate:g}" for rate in RATES])] = "0.01"  # promised false match rate
    side: Annotated[str, ChoiceKind(SIDES)] = "unseen"  # classes whose pairs and curves are shown
    order: Annotated[str, ChoiceKind(ORDERS)] = "worst"  # order of the wrong pairs
    curve: Annotated[str, ChoiceKind(CURVES)] = "fmr"  # rate of each class
