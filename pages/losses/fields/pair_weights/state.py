"""What the microscope shows: two losses, which weight, over which rivals; from a link or message, never trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast
from urllib.parse import urlencode

from dmlcore.loss_analysis.pair_weights import RIVALS, Rival
from pages.shared.state import untrusted
from pages.shared.state.panel import Panel, panel

CHOICES: dict[str, tuple[str, ...]] = {
    "weight": ("an", "ap", "pn"),  # the pair whose weight is drawn
    "by": ("S", "d"),  # dL/dS or dL/dd
    "scale": ("signed", "size"),
    "rival": RIVALS,
}
NEAREST = 0.995  # similarities of distinct points stay within +-this
KEPT_APART = ("hide", "socket")  # query parameters that are no part of the view

DEFAULTS = (panel("ranking"), panel("facenet"))


@dataclass(frozen=True)
class MicroscopeView:
    """Two losses under one lens; pn is S_pn where rival = "fixed"; at = (S_ap, S_an) of the triplet read out."""

    panels: tuple[Panel, Panel] = DEFAULTS
    weight: str = "an"
    by: str = "S"
    scale: str = "signed"
    rival: Rival = "perpendicular"
    pn: float = 0.0
    at: tuple[float, float] = (0.5, 0.6)

    @classmethod
    def of(cls, data: Any) -> MicroscopeView:
        """A valid view from untrusted data: what is missing or senseless falls back to the default."""
        data = data if isinstance(data, Mapping) else {}
        given = data.get("panels")
        given = [*given[:2]] if isinstance(given, (list, tuple)) else []
        first, second = (Panel.of(p, d) for p, d in zip([*given, None, None], DEFAULTS, strict=False))
        found = {k: untrusted.one_of(data.get(k), options, getattr(cls, k)) for k, options in CHOICES.items()}
        return cls(
            (first, second),
            found["weight"],
            found["by"],
            found["scale"],
            cast(Rival, found["rival"]),
            untrusted.bounded(data.get("pn"), -NEAREST, NEAREST, cls.pn),
            place(data.get("at")) or cls.at,
        )

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> MicroscopeView:
        """The view of a link: ?l1=ranking,m:0.2&l2=npairs&weight=ap&at=0.6,0.5."""
        data: dict[str, Any] = {k: query[k] for k in (*CHOICES, "pn") if k in query}
        keys = ("l1", "l2")
        data["panels"] = [
            asdict(Panel.from_text(query[k], d)) if k in query else None for k, d in zip(keys, DEFAULTS, strict=True)
        ]
        if "at" in query:
            data["at"] = query["at"][:80].split(",")
        return cls.of(data)

    def link(self) -> str:
        """What differs from the default, as a query string."""
        query = {
            f"l{i + 1}": p.to_text()
            for i, (p, d) in enumerate(zip(self.panels, DEFAULTS, strict=True))
            if p.to_text() != d.to_text()
        }
        query |= {k: getattr(self, k) for k in CHOICES if getattr(self, k) != getattr(type(self), k)}
        if self.pn != type(self).pn:
            query["pn"] = untrusted.plain(self.pn)
        if self.at != type(self).at:
            query["at"] = ",".join(untrusted.plain(v) for v in self.at)
        return urlencode(query, safe=",:")

    def to_json(self) -> dict[str, Any]:
        """Plain data that `of` reads back; infinity, which JSON lacks, becomes None."""
        panels = [{"loss": p.loss, "hyper": untrusted.jsonable(p.hyper)} for p in self.panels]
        return asdict(self) | {"panels": panels}


def place(value: Any) -> tuple[float, float] | None:
    """Two similarities within reach; None for anything else."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    first, second = (untrusted.finite(v) for v in value)
    if first is None or second is None:
        return None
    return min(max(first, -NEAREST), NEAREST), min(max(second, -NEAREST), NEAREST)


@dataclass(frozen=True)
class Slide:
    """A pair of losses worth putting under the microscope."""

    title: str
    caption: str
    view: MicroscopeView


SLIDES = (
    Slide(
        "Ranking against FaceNet",
        "By similarity FaceNet weighs every active pair alike (±2), ranking weighs close pairs most (1/d).",
        MicroscopeView(),
    ),
    Slide(
        "METU against N-pairs",
        "METU's push, 1/d³ by similarity, grows until the upper clamp cuts it off; the soft-max's stays below 1.",
        MicroscopeView((panel("distance_sensitive"), panel("npairs"))),
    ),
    Slide(
        "Hinge against soft-max",
        "The hinge acts below a line and not at all above it; the original triplet loss fades and never quite stops.",
        MicroscopeView((panel("ranking", m=0.1), panel("hoffer")), weight="ap"),
    ),
    Slide(
        "All against semi-hard",
        "The same slopes; the second loss drops the hardest negatives, those closer to the anchor than the positive.",
        MicroscopeView((panel("facenet", m=0.2), panel("facenet_mined", m=0.2))),
    ),
    Slide(
        "Who repels the positive",
        "The pair p-n, which classical triplet losses leave alone: lifted shares one push, entangled pushes both ends.",
        MicroscopeView((panel("lifted"), panel("entangle", m=2.5)), weight="pn", rival="fixed", pn=0.3),
    ),
)
