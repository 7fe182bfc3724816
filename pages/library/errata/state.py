"""State of a counter-example on the Errata page, parsed from untrusted URLs and messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from dmlcore import losses
from dmlcore.geometry import Probe
from dmlcore.published.printed_formulas import COUNTEREXAMPLES, POINTS
from pages.shared.plane.service import as_tensors
from pages.shared.plane.state import Scene
from pages.shared.state import untrusted
from pages.shared.state.page_state import ChoiceKind, Hyper, Kind, Numbers, PageState, WindowKind
from pages.shared.state.untrusted import Point

FIRST = 4  # number of the erratum shown by default, chosen because its wrong factor is easy to see


class ErratumKind(Kind):
    """Type of the page-state field that holds the number of the erratum.

    The number sets the defaults of all other fields and is written to every URL.
    """

    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> int:
        return int(default.number)

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        return {self.key: str(state.number)}


class Sliders(Hyper):
    """Type of the page-state field that holds the hyper-parameters of a counter-example.

    Only hyper-parameters with a slider can be set.
    """

    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> Any:
        given, sliders = data.get(name), COUNTEREXAMPLES[default.number].sliders
        given = {k: v for k, v in given.items() if k in sliders} if isinstance(given, Mapping) else {}
        return super().of(name, {name: given}, default, {"loss": default.loss})


@dataclass(frozen=True)
class Example(PageState):
    """Counter-example of an erratum: hyper-parameters, triplet, window of the map, and the point moved over the map."""

    number: Annotated[int, ErratumKind(key="erratum")]
    hyper: Annotated[Mapping[str, float | str], Sliders()]
    anchor: Annotated[Point, Numbers(key="a")]
    positive: Annotated[Point, Numbers(key="p")]
    negative: Annotated[Point, Numbers(key="n")]
    view: Annotated[tuple[float, float, float], WindowKind()]  # centre x, centre y, half width
    probe: Annotated[Probe, ChoiceKind(POINTS)] = "negative"

    @classmethod
    def at(cls, number: int) -> Self:
        """Return the counter-example of erratum `number` with its default values."""
        shown = COUNTEREXAMPLES[number]
        points = shown.anchor, shown.positive, shown.negative
        low, high = ([side(p[axis] for p in points) for axis in (0, 1)] for side in (min, max))
        half = max(h - w for w, h in zip(low, high, strict=True)) / 2 + 1
        view = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2, half)
        return cls(number, untrusted.hyper(shown.loss, shown.hyper), *points, view)

    @classmethod
    def of(cls, data: Any, default: Self | None = None) -> Self:
        """Return a valid counter-example from untrusted data.

        The erratum is that of `default` or, if `default` is None, the one named in `data` (FIRST if that is invalid).
        """
        number = data.get("number") if isinstance(data, Mapping) else None
        known = {str(each): each for each in COUNTEREXAMPLES}.get(str(number), FIRST)
        return super().of(data, cls.at(known) if default is None else default)

    def default(self) -> Self:
        """Return the counter-example of this erratum with its default values."""
        return self.at(self.number)

    @property
    def loss(self) -> str:
        """Name of the loss whose gradient is misprinted."""
        return COUNTEREXAMPLES[self.number].loss

    def fields(self) -> Scene:
        """Return this triplet as a scene of the Fields page.

        If the loss would be 0 at the triplet, its margin is raised so that the energy before the clamp is at least 1.
        """
        formula, hyper = losses.formula(self.loss), dict(self.hyper)
        scene = Scene.of({"loss": self.loss, "hyper": hyper} | {k: getattr(self, k) for k in (*POINTS, "view")})
        core = float(scene.module().core(*as_tensors(scene)))
        if formula.margin and math.isfinite(core) and core + float(hyper[formula.margin.name]) <= 0:
            hyper[formula.margin.name] = math.ceil(10 * (1 - core)) / 10
        return Scene.of(scene.to_json() | {"hyper": untrusted.jsonable(hyper)})
