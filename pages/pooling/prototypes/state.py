"""What the prototypes page shows: source, prototypes, classes, image; from a link or message, never trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from dmlcore import data
from dmlcore.inspection.local import local_features
from dmlcore.inspection.local.local_features import MOST_CLASSES, MOST_PER_CLASS
from dmlcore.storage.runs import RUN_ID, RunError, RunStore
from pages.shared.state import untrusted
from pages.shared.words import titles

FEWEST, MOST = 4, 64  # prototypes
MOST_SHOWN = 3  # classes with a hull
LARGEST_TAU = 0.9  # in units of 1/m: every class keeps its largest share, so no hull is empty
WEIGHTS = ("uniform", "pooling")
BUILT_IN = ("digits3", "digits4", "cifar10")
MOST_RUNS = 30  # to take local features from
KEPT_APART = ("hide", "socket")  # query parameters that are no part of the view


@dataclass(frozen=True)
class PrototypesView:
    """tau in units of 1/m; shown: places of classes among those of the source; picture: (place of class, rank)."""

    source: str = "digits3"  # or "run:" and its id
    prototypes: int = 48
    per_class: int = MOST_PER_CLASS
    tau: float = 0.1
    weights: str = "uniform"
    shown: tuple[int, ...] = (0, 1, 7)
    picture: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, data: Any) -> PrototypesView:
        """A valid view from untrusted data: what is missing or senseless falls back to the default."""
        data = data if isinstance(data, Mapping) else {}

        def whole(value: Any, low: int, high: int, default: int) -> int:
            return round(untrusted.bounded(value, low, high, default))

        shown, picture = data.get("shown"), data.get("picture")
        places = [whole(v, 0, MOST_CLASSES - 1, 0) for v in shown[:MOST_SHOWN]] if _listed(shown) else cls.shown
        picture = [*picture[:2]] if _listed(picture) else []
        number, rank = (*picture, None, None)[:2]
        return cls(
            source=_source(data.get("source")),
            prototypes=whole(data.get("prototypes"), FEWEST, MOST, cls.prototypes),
            per_class=whole(data.get("per_class"), 1, MOST_PER_CLASS, cls.per_class),
            tau=round(untrusted.bounded(data.get("tau"), 0.0, LARGEST_TAU, cls.tau), 4),
            weights=untrusted.one_of(data.get("weights"), WEIGHTS, cls.weights),
            shown=tuple(dict.fromkeys(places)),
            picture=(whole(number, 0, MOST_CLASSES - 1, 0), whole(rank, 0, MOST_PER_CLASS - 1, 0)),
        )

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> PrototypesView:
        """The view of a link: ?source=cifar10&m=16&per=32&tau=0&weigh=pooling&classes=0,1&picture=3,12."""
        names = {"source": "source", "m": "prototypes", "per": "per_class", "tau": "tau", "weigh": "weights"}
        data: dict[str, Any] = {field: query[key] for key, field in names.items() if key in query}
        for key, field in (("classes", "shown"), ("picture", "picture")):
            if key in query:
                data[field] = query[key][:80].split(",")
        return cls.of(data)

    def link(self) -> str:
        """What differs from the default, as a query string."""
        mine, usual = self._texts(), PrototypesView()._texts()
        return urlencode({k: v for k, v in mine.items() if v != usual[k]}, safe=",:")

    def _texts(self) -> dict[str, str]:
        return {
            "source": self.source,
            "m": str(self.prototypes),
            "per": str(self.per_class),
            "tau": untrusted.plain(self.tau),
            "weigh": self.weights,
            "classes": ",".join(map(str, self.shown)),
            "picture": ",".join(map(str, self.picture)),
        }

    def to_json(self) -> dict[str, Any]:
        """Plain data that `of` reads back."""
        return asdict(self)


def _listed(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value)


def _source(value: Any) -> str:
    text = value if isinstance(value, str) else ""
    known = text in BUILT_IN or (text.startswith("run:") and RUN_ID.fullmatch(text.removeprefix("run:")))
    return text if known else PrototypesView.source


def sources(wanted: str) -> dict[str, str]:
    """What local features can be taken from, by name; the source of the link is among them even if it is gone."""
    found = {"digits3": "Digits, patches of 3 × 3", "digits4": "Digits, patches of 4 × 4"}
    if data.available("cifar10") is not None and local_features.pretrained_weights() is not None:
        found["cifar10"] = "CIFAR-10, ResNet20 classifier"
    for run in RunStore().newest(MOST_RUNS):
        try:
            if local_features.has_images(run.spec):
                found[f"run:{run.id}"] = f"Run {titles.label(run)}"
        except RunError:  # deleted this very moment
            continue
    return found if wanted in found else found | {wanted: f"{wanted.removeprefix('run:')} (not here)"}
