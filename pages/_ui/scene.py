"""The scene of the fields page: plain data, from a link or a message of the browser, never trusted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, cast

from dmlcore import losses
from dmlcore.geometry import Probe
from dmlcore.losses.presets import PRESETS
from dmlcore.params import Choice, Slider

POINTS = ("anchor", "positive", "negative")
SHADES = ("energy", "force")
REACH = 100.0  # coordinates beyond this are brought back
MARGINS = 1000.0  # likewise margins and clamps
Point = tuple[float, float]


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
        name = data.get("loss")
        name = name if isinstance(name, str) and name in losses.names() else default.loss
        raw_hyper = data.get("hyper")
        return cls(
            loss=name,
            hyper=_hyper(name, raw_hyper if isinstance(raw_hyper, Mapping) else {}),
            anchor=_point(data.get("anchor"), default.anchor),
            positive=_point(data.get("positive"), default.positive),
            negative=_point(data.get("negative"), default.negative),
            probe=cast(Probe, _one_of(data.get("probe"), POINTS, default.probe)),
            shade=_one_of(data.get("shade"), SHADES, default.shade),
            region=_flag(data.get("region"), default.region),
            arrows=_flag(data.get("arrows"), default.arrows),
            discs=_flag(data.get("discs"), default.discs),
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
        query |= {k: _text(v) for k, v in self.hyper.items() if v != default.hyper[k]}
        for name in POINTS:
            if getattr(self, name) != getattr(default, name):
                query[name[0]] = ",".join(_text(v) for v in getattr(self, name))
        query |= {k: getattr(self, k) for k in ("probe", "shade") if getattr(self, k) != getattr(default, k)}
        query |= {k: str(int(getattr(self, k))) for k in _FLAGS if getattr(self, k) != getattr(default, k)}
        if self.view != default.view:
            query["view"] = ",".join(_text(v) for v in self.view)
        return query

    def module(self) -> losses.TripletLoss:
        """The loss of this scene."""
        return losses.create(self.loss, **self.hyper)

    def to_json(self) -> dict[str, Any]:
        """Plain data that `of` reads back; infinity, which JSON lacks, becomes None."""
        return asdict(self) | {"hyper": {k: None if v == math.inf else v for k, v in self.hyper.items()}}


_FLAGS = ("region", "arrows", "discs")


def finite(value: Any) -> float | None:
    """A finite float of a number or a short text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)) or len(str(value)) > 32:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _hyper(name: str, given: Mapping[str, Any]) -> dict[str, float | str]:
    formula = losses.formula(name)
    hyper = dict(formula.defaults)
    for key, parameter in formula.parameters.items():
        value = given.get(key, hyper[key])
        if isinstance(parameter, Choice):
            hyper[key] = _one_of(value, parameter.options, str(hyper[key]))
        elif parameter.optional and (value is None or value in ("inf", math.inf)):
            hyper[key] = math.inf
        elif (number := finite(value)) is not None:
            # Papers use margins far outside the sliders (m = 40); exponents and ratios beyond them mean nothing.
            low, high = (-MARGINS, MARGINS) if key.startswith("m") else (parameter.low, parameter.high)
            number = min(max(number, low), high)
            hyper[key] = number if number > parameter.above else parameter.low
    return hyper


def _point(value: Any, default: Point) -> Point:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return default
    x, y = (finite(v) for v in value)
    return default if x is None or y is None else (_within(x), _within(y))


def _within(x: float) -> float:
    return min(max(x, -REACH), REACH)


def _view(value: Any, default: tuple[float, float, float]) -> tuple[float, float, float]:
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        return default
    x, y, half = (finite(v) for v in value)
    if x is None or y is None or half is None:
        return default
    return _within(x), _within(y), min(max(half, 0.05), 50.0)


def _flag(value: Any, default: bool) -> bool:
    return {True: True, False: False, "1": True, "0": False}.get(value, default) if _hashable(value) else default


def _one_of(value: Any, options: tuple[str, ...], default: str) -> str:
    return value if isinstance(value, str) and value in options else default


def _hashable(value: Any) -> bool:
    return isinstance(value, (bool, str))


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


@cache
def schema() -> str:
    """What the component needs to know, as JSON: every loss with its sliders, and the presets."""

    def control(key: str, parameter: Slider | Choice, default: float | str) -> dict[str, Any]:
        shown: dict[str, Any] = {"name": key, "symbol": parameter.symbol, "help": parameter.help}
        shown["default"] = None if default == math.inf else default
        if isinstance(parameter, Choice):
            return shown | {"options": parameter.options}
        return shown | {k: getattr(parameter, k) for k in ("low", "high", "step", "log", "optional")}

    formulas = [losses.formula(name) for name in losses.names()]
    presets = [
        {
            "figure": p.figure,
            "panel": p.panel,
            "caption": p.caption,
            "scene": Scene.of(asdict(p)).to_json(),
        }
        for p in PRESETS
    ]
    return json.dumps(
        {
            "losses": {
                f.name: {"title": f.title, "controls": [control(k, v, f.defaults[k]) for k, v in f.sliders.items()]}
                for f in formulas
            },
            "presets": presets,
        },
        ensure_ascii=False,
    )
