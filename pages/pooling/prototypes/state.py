"""State of the Prototypes page (source, prototypes, classes, image), parsed from untrusted URLs and messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from dmlcore import data
from dmlcore.inspection.local import local_features
from dmlcore.inspection.local.local_features import MOST_CLASSES, MOST_PER_CLASS
from dmlcore.storage.runs import RUN_ID, RunError, RunStore
from pages.shared.state import untrusted
from pages.shared.state.page_state import ChoiceKind, Kind, NumberKind, PageState, Whole
from pages.shared.words import titles

MOST = 64  # maximum number of prototypes
MOST_SHOWN = 3  # maximum number of classes whose hull is shown
BUILT_IN = ("digits3", "digits4", "cifar10")
MOST_RUNS = 30  # maximum number of runs offered as sources


class Source(Kind):
    """State field for a source of local features: a built-in one, or "run:ID" for a run that may no longer exist."""

    def read(self, value: Any, default: Any) -> Any:
        text = value if isinstance(value, str) else ""
        known = text in BUILT_IN or (text.startswith("run:") and RUN_ID.fullmatch(text.removeprefix("run:")))
        return text if known else default


class Classes(Kind):
    """State field for one to MOST_SHOWN different classes, by position in the source's sorted class labels."""

    def read(self, value: Any, default: Any) -> Any:
        if not isinstance(value, (list, tuple)) or not value:
            return default
        return tuple(dict.fromkeys(_place(v, MOST_CLASSES) for v in value[:MOST_SHOWN]))

    def parse(self, text: str) -> Any:
        return text.split(",", MOST_SHOWN)

    def text(self, value: Any) -> str:
        return ",".join(map(str, value))


class Picture(Classes):
    """State field for the chosen image: position of its class, and number of the image in that class, both from 0."""

    def read(self, value: Any, default: Any) -> Any:
        number, rank = (*(value if isinstance(value, (list, tuple)) else default), None, None)[:2]
        return _place(number, MOST_CLASSES), _place(rank, MOST_PER_CLASS)


def _place(value: Any, count: int) -> int:
    return int(untrusted.bounded(value, 0, count - 1, 0))


@dataclass(frozen=True)
class PrototypesView(PageState):
    """State of the Prototypes page.

    Attributes:
        tau: Fraction of a class's histogram above which a prototype is active, in units of 1/m for m prototypes. Since
            the largest of m fractions is at least 1/m, a tau below 1 leaves at least one active prototype per class.
    """

    source: Annotated[str, Source()] = "digits3"
    prototypes: Annotated[int, Whole(4, MOST, key="m")] = 48
    per_class: Annotated[int, Whole(1, MOST_PER_CLASS, key="per")] = MOST_PER_CLASS
    tau: Annotated[float, NumberKind(0.0, 0.9)] = 0.1
    weights: Annotated[str, ChoiceKind(("uniform", "pooling"), key="weigh")] = "uniform"
    shown: Annotated[tuple[int, ...], Classes(key="classes")] = (0, 1, 7)
    picture: Annotated[tuple[int, int], Picture()] = (0, 0)


def sources(wanted: str) -> dict[str, str]:
    """Return the title of each available source of local features, by key; `wanted` is included even if unavailable."""
    by_key = {"digits3": "Digits, patches of 3 × 3", "digits4": "Digits, patches of 4 × 4"}
    if data.available("cifar10") is not None and local_features.pretrained_weights() is not None:
        by_key["cifar10"] = "CIFAR-10, ResNet20 classifier"
    for run in RunStore().newest(MOST_RUNS):
        try:
            if local_features.has_images(run.spec):
                by_key[f"run:{run.id}"] = f"Run {titles.label(run)}"
        except RunError:  # deleted in the meantime
            continue
    return by_key if wanted in by_key else by_key | {wanted: f"{wanted.removeprefix('run:')} (not available)"}
