"""What the compare page shows: two to four losses over the same points; from a link or message, never trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from dmlcore.geometry import Probe
from pages.shared.plane.state import HEAVIEST, POINTS, Scene
from pages.shared.state import untrusted
from pages.shared.state.page_state import ChoiceKind, Flag, Kind, NumberKind, Numbers, PageState, Panels, WindowKind
from pages.shared.state.panel import Panel, panel
from pages.shared.state.untrusted import Point, exact

FEWEST = 2  # losses side by side
DEFAULTS = (
    panel("ranking", m=0.3),
    panel("distance_sensitive"),
    panel("facenet"),
    panel("angular"),
)


class PanelPair(Kind):
    """Two different panels, the first two unless both are known; a link counts from 1."""

    def of(self, name: str, data: Mapping[str, Any], default: Any, fields: Mapping[str, Any]) -> tuple[int, int]:
        value = data.get(name)
        places = [untrusted.finite(v) for v in value] if isinstance(value, (list, tuple)) and len(value) == 2 else []
        known = [int(x) for x in places if x is not None and x == int(x) and 0 <= x < len(fields["panels"])]
        return (known[0], known[1]) if len(set(known)) == 2 else (0, 1)

    def parse(self, text: str) -> Any:
        places = [untrusted.finite(x) for x in text.split(",", 3)]
        return [None if x is None else x - 1 for x in places]

    def text(self, value: Any) -> str:
        return ",".join(str(i + 1) for i in value)


@dataclass(frozen=True)
class ComparisonView(PageState):
    """Losses over linked points. pair = the two whose difference is drawn and tested, as indices of `panels`.

    clamp: colours and forces of the clamped losses, or of the raw ones; orders: summed over (a, p, n) and (p, a, n);
    fit: the second of the pair multiplied by the best factor; space: where sameness is judged.
    """

    panels: Annotated[tuple[Panel, ...], Panels(DEFAULTS, FEWEST)] = DEFAULTS[:FEWEST]
    pair: Annotated[tuple[int, int], PanelPair()] = (0, 1)
    anchor: Annotated[Point, Numbers(key="a", number=exact)] = (0.0, 0.0)
    positive: Annotated[Point, Numbers(key="p", number=exact)] = (0.5, 0.0)
    negative: Annotated[Point, Numbers(key="n", number=exact)] = (0.35, 0.55)
    probe: Annotated[Probe, ChoiceKind(POINTS)] = "negative"
    shade: Annotated[str, ChoiceKind(("energy", "force"))] = "energy"
    space: Annotated[str, ChoiceKind(("plane", "sphere"))] = "plane"
    clamp: Annotated[bool, Flag()] = True
    orders: Annotated[bool, Flag()] = False
    fit: Annotated[bool, Flag()] = False
    region: Annotated[bool, Flag()] = True
    arrows: Annotated[bool, Flag()] = True
    landscape: Annotated[bool, Flag()] = False  # the energies of the pair as surfaces in space
    mass: Annotated[float, NumberKind(0.0, HEAVIEST)] = 0.0  # of the marbles on them; 0: gradient flow
    view: Annotated[tuple[float, float, float], WindowKind(number=exact)] = (0.25, 0.1, 1.5)


def beside(scene: Scene) -> ComparisonView:
    """The loss and the points of Plane, and beside them the first loss of a bare address that is another one."""
    other = next(each for each in DEFAULTS if each.loss != scene.loss)
    return ComparisonView(
        panels=(Panel(scene.loss, scene.hyper), other),
        anchor=scene.anchor,
        positive=scene.positive,
        negative=scene.negative,
        probe=scene.probe,
        view=scene.view,
    )
