"""What the compare page shows: two to four losses over the same points; from a link or message, never trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast
from urllib.parse import urlencode

from dmlcore.geometry import Probe
from pages.shared.state import untrusted
from pages.shared.state.panel import Panel, panel
from pages.shared.state.untrusted import Point

POINTS = ("anchor", "positive", "negative")
SHADES = ("energy", "force")
SPACES = ("plane", "sphere")
FEWEST, MOST = 2, 4  # losses side by side


DEFAULTS = (
    panel("ranking", m=0.3),
    panel("distance_sensitive"),
    panel("facenet"),
    panel("angular"),
)


@dataclass(frozen=True)
class Comparison:
    """Losses over linked points. pair = the two whose difference is drawn and tested, as indices of `panels`.

    clamp: colours and forces of the clamped losses, or of the raw ones; orders: summed over (a, p, n) and (p, a, n);
    fit: the second of the pair multiplied by the best factor; space: where sameness is judged.
    """

    panels: tuple[Panel, ...] = DEFAULTS[:FEWEST]
    pair: tuple[int, int] = (0, 1)
    anchor: Point = (0.0, 0.0)
    positive: Point = (0.5, 0.0)
    negative: Point = (0.35, 0.55)
    probe: Probe = "negative"
    shade: str = "energy"
    space: str = "plane"
    clamp: bool = True
    orders: bool = False
    fit: bool = False
    region: bool = True
    arrows: bool = True
    view: tuple[float, float, float] = field(default=(0.25, 0.1, 1.5))

    @classmethod
    def of(cls, data: Any) -> Comparison:
        """A valid comparison from untrusted data: what is missing or senseless falls back to the default."""
        default = cls()
        data = data if isinstance(data, Mapping) else {}
        given = data.get("panels")
        given = given[:MOST] if isinstance(given, (list, tuple)) else []
        panels = tuple(Panel.of(p, DEFAULTS[i]) for i, p in enumerate(given))
        panels += DEFAULTS[len(panels) : FEWEST]
        x, y, half = untrusted.numbers(data.get("view"), default.view)
        return cls(
            panels=panels,
            pair=_pair(data.get("pair"), len(panels)),
            anchor=cast(Point, untrusted.numbers(data.get("anchor"), default.anchor)),
            positive=cast(Point, untrusted.numbers(data.get("positive"), default.positive)),
            negative=cast(Point, untrusted.numbers(data.get("negative"), default.negative)),
            probe=cast(Probe, untrusted.one_of(data.get("probe"), POINTS, default.probe)),
            shade=untrusted.one_of(data.get("shade"), SHADES, default.shade),
            space=untrusted.one_of(data.get("space"), SPACES, default.space),
            **{k: untrusted.flag(data.get(k), getattr(default, k)) for k in _FLAGS},
            view=(x, y, min(max(half, 0.05), 50.0)),
        )

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Comparison:
        """The comparison of a link: ?l1=angular,rho:0.6&l2=distance_sensitive,s:1,r:-1&n=0.3,0.8&pair=1,2."""
        data: dict[str, Any] = {k: query[k] for k in ("probe", "shade", "space", *_FLAGS) if k in query}
        data["panels"] = []
        for i, default in enumerate(DEFAULTS):
            if f"l{i + 1}" in query:
                data["panels"].append(asdict(Panel.from_text(query[f"l{i + 1}"], default)))
            elif i < FEWEST:
                data["panels"].append(None)
        data |= {name: query[name[0]].split(",") for name in POINTS if name[0] in query}
        if "view" in query:
            data["view"] = query["view"].split(",")
        if "pair" in query:
            numbers = [untrusted.finite(x) for x in query["pair"].split(",")[:3]]
            data["pair"] = [None if x is None else x - 1 for x in numbers]
        return cls.of(data)

    def to_query(self) -> dict[str, str]:
        """What differs from the default, as readable query parameters."""
        default = Comparison()
        query = {
            f"l{i + 1}": panel.to_text() for i, panel in enumerate(self.panels) if i >= FEWEST or panel != DEFAULTS[i]
        }
        for name in POINTS:
            if getattr(self, name) != getattr(default, name):
                query[name[0]] = ",".join(untrusted.exact(v) for v in getattr(self, name))
        for key in ("probe", "shade", "space"):
            if getattr(self, key) != getattr(default, key):
                query[key] = getattr(self, key)
        query |= {k: str(int(getattr(self, k))) for k in _FLAGS if getattr(self, k) != getattr(default, k)}
        if self.pair != default.pair:
            query["pair"] = ",".join(str(i + 1) for i in self.pair)
        if self.view != default.view:
            query["view"] = ",".join(untrusted.exact(v) for v in self.view)
        return query

    def link(self) -> str:
        """The query string of `to_query`."""
        return urlencode(self.to_query(), safe=",:")

    def to_json(self) -> dict[str, Any]:
        """Plain data that `of` reads back; infinity, which JSON lacks, becomes None."""
        panels = [{"loss": p.loss, "hyper": untrusted.jsonable(p.hyper)} for p in self.panels]
        return asdict(self) | {"panels": panels}


_FLAGS = ("clamp", "orders", "fit", "region", "arrows")


def _pair(value: Any, count: int) -> tuple[int, int]:
    """Two different panels; the first two unless both are known."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return 0, 1
    first, second = (untrusted.finite(v) for v in value)
    if first is None or second is None or first == second:
        return 0, 1
    known = all(x == int(x) and 0 <= x < count for x in (first, second))
    return (int(first), int(second)) if known else (0, 1)
