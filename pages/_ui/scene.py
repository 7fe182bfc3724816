"""The scene of the fields page: plain data, from a link or a message of the browser, never trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from dmlcore import losses
from dmlcore.geometry import Probe
from pages._ui import untrusted
from pages._ui.untrusted import Point

POINTS = ("anchor", "positive", "negative")
SHADES = ("energy", "force")


@dataclass(frozen=True)
class Scene:
    """What the plane shows; hyper holds every parameter of the loss, view = (centre x, centre y, half width)."""

    loss: str = "distance_sensitive"
    hyper: Mapping[str, float | str] = field(default_factory=lambda: losses.formula("distance_sensitive").defaults)
    anchor: Point = (0.0, 0.0)
    positive: Point = (0.5, 0.0)
    negative: Point = (0.35, 0.75)
    probe: Probe = "negative"
    shade: str = "energy"
    region: bool = True
    arrows: bool = True
    discs: bool = False
    view: tuple[float, float, float] = (0.25, 0.1, 1.5)

    @classmethod
    def of(cls, data: Any) -> Scene:
        """A valid scene from untrusted data: what is missing or senseless falls back, numbers are brought in range."""
        default = cls()
        data = data if isinstance(data, Mapping) else {}
        name = untrusted.loss_name(data.get("loss"), default.loss)
        return cls(
            loss=name,
            hyper=untrusted.hyper(name, data.get("hyper")),
            anchor=cast(Point, untrusted.numbers(data.get("anchor"), default.anchor)),
            positive=cast(Point, untrusted.numbers(data.get("positive"), default.positive)),
            negative=cast(Point, untrusted.numbers(data.get("negative"), default.negative)),
            probe=cast(Probe, untrusted.one_of(data.get("probe"), POINTS, default.probe)),
            shade=untrusted.one_of(data.get("shade"), SHADES, default.shade),
            region=untrusted.flag(data.get("region"), default.region),
            arrows=untrusted.flag(data.get("arrows"), default.arrows),
            discs=untrusted.flag(data.get("discs"), default.discs),
            view=_view(data.get("view"), default.view),
        )

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Scene:
        """The scene of a link, for example ?loss=ranking&m=0.2&n=0.3,0.8."""
        data: dict[str, Any] = {k: query[k] for k in ("loss", "probe", "shade", *_FLAGS) if k in query}
        data["hyper"] = dict(query)
        data |= {name: query[name[0]].split(",") for name in POINTS if name[0] in query}
        if "view" in query:
            data["view"] = query["view"].split(",")
        return cls.of(data)

    def to_query(self) -> dict[str, str]:
        """What differs from the default scene and the loss's defaults, as readable query parameters."""
        default = Scene.of({"loss": self.loss})
        query = {} if self.loss == Scene().loss else {"loss": self.loss}
        query |= {k: untrusted.plain(v) for k, v in self.hyper.items() if v != default.hyper[k]}
        for name in POINTS:
            if getattr(self, name) != getattr(default, name):
                query[name[0]] = ",".join(untrusted.plain(v) for v in getattr(self, name))
        query |= {k: getattr(self, k) for k in ("probe", "shade") if getattr(self, k) != getattr(default, k)}
        query |= {k: str(int(getattr(self, k))) for k in _FLAGS if getattr(self, k) != getattr(default, k)}
        if self.view != default.view:
            query["view"] = ",".join(untrusted.plain(v) for v in self.view)
        return query

    def module(self) -> losses.TripletLoss:
        """The loss of this scene."""
        return losses.create(self.loss, **self.hyper)

    def to_json(self) -> dict[str, Any]:
        """Plain data that `of` reads back; infinity, which JSON lacks, becomes None."""
        return asdict(self) | {"hyper": untrusted.jsonable(self.hyper)}


_FLAGS = ("region", "arrows", "discs")


def _view(value: Any, default: tuple[float, float, float]) -> tuple[float, float, float]:
    x, y, half = untrusted.numbers(value, default)
    return x, y, min(max(half, 0.05), 50.0)
