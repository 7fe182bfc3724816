"""The scene of a counter-example on the truth page: plain data, from a link or a message, never trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from dmlcore import losses
from dmlcore.geometry import Probe
from dmlcore.published.printed_formulas import COUNTEREXAMPLES, POINTS, Counterexample
from pages.shared.plane.readout.service import as_tensors
from pages.shared.plane.state import Scene
from pages.shared.state import untrusted
from pages.shared.state.untrusted import Point

FIRST = 4  # shown where nothing is asked for: its wrong factor is easy to see


@dataclass(frozen=True)
class Example:
    """A counter-example with its triplet: number of the erratum, hyper-parameters, points, probe and view."""

    number: int
    hyper: Mapping[str, float | str]
    anchor: Point
    positive: Point
    negative: Point
    probe: Probe
    view: tuple[float, float, float]  # centre x, centre y, half width

    @classmethod
    def of(cls, data: Any) -> Example:
        """A valid scene of untrusted data; what is missing or senseless is that of the erratum."""
        data = data if isinstance(data, Mapping) else {}
        number = data.get("number")
        number = number if isinstance(number, int) and number in COUNTEREXAMPLES else FIRST
        shown = COUNTEREXAMPLES[number]
        given = data.get("hyper")
        given = {k: v for k, v in given.items() if k in shown.sliders} if isinstance(given, Mapping) else {}
        a, p, n = (cast(Point, untrusted.numbers(data.get(k), getattr(shown, k))) for k in POINTS)
        return cls(
            number,
            untrusted.hyper(shown.loss, dict(shown.hyper or {}) | given),
            a,
            p,
            n,
            cast(Probe, untrusted.one_of(data.get("probe"), POINTS, "negative")),
            _view(data.get("view"), shown),
        )

    @classmethod
    def from_query(cls, number: int, query: Mapping[str, str]) -> Example:
        """The scene of a link, for example ?erratum=4&rho=0.3&n=0.3,0.8."""
        data: dict[str, Any] = {"number": number, "hyper": dict(query), "probe": query.get("probe")}
        data |= {name: query[name[0]].split(",") for name in POINTS if name[0] in query}
        if "view" in query:
            data["view"] = query["view"].split(",")
        return cls.of(data)

    def to_query(self) -> dict[str, str]:
        """What differs from the counter-example as the erratum has it."""
        default = Example.of({"number": self.number})
        query = {"erratum": str(self.number)}
        query |= {k: untrusted.plain(v) for k, v in self.hyper.items() if v != default.hyper[k]}
        for name in (*POINTS, "view"):
            if getattr(self, name) != getattr(default, name):
                query[name if name == "view" else name[0]] = ",".join(map(untrusted.plain, getattr(self, name)))
        if self.probe != default.probe:
            query["probe"] = self.probe
        return query

    def to_json(self) -> dict[str, Any]:
        """Plain data that `of` reads back."""
        points = {name: getattr(self, name) for name in POINTS}
        return points | {
            "number": self.number,
            "hyper": untrusted.jsonable(self.hyper),
            "probe": self.probe,
            "view": self.view,
        }

    def fields(self) -> Scene:
        """The same triplet on the Fields page; where the loss would be inactive, its margin is raised to 1 - core."""
        loss = COUNTEREXAMPLES[self.number].loss
        formula, hyper = losses.formula(loss), dict(self.hyper)
        scene = Scene.of({"loss": loss, "hyper": hyper} | {k: getattr(self, k) for k in (*POINTS, "view")})
        core = float(scene.module().core(*as_tensors(scene)))
        if formula.margin and math.isfinite(core) and core + float(hyper[formula.margin.name]) <= 0:
            hyper[formula.margin.name] = math.ceil(10 * (1 - core)) / 10
        return Scene.of(scene.to_json() | {"hyper": untrusted.jsonable(hyper)})


def _view(value: Any, shown: Counterexample) -> tuple[float, float, float]:
    points = [getattr(shown, name) for name in POINTS]
    low, high = ([side(p[axis] for p in points) for axis in (0, 1)] for side in (min, max))
    half = max(h - w for w, h in zip(low, high, strict=True)) / 2 + 1
    x, y, half = untrusted.numbers(value, ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2, half))
    return x, y, min(max(half, 0.05), 50.0)
