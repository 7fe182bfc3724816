"""State of the Compare page, two to four losses for the same points, parsed from untrusted URLs and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from dmlcore.geometry import Probe
from pages.shared.plane.state import HEAVIEST, POINTS, Scene
from pages.shared.state import untrusted
from pages.shared.state.page_state import ChoiceKind, Flag, Kind, NumberKind, Numbers, PageState, WindowKind
from pages.shared.state.panel import Panel, Panels, panel
from pages.shared.state.untrusted import Point, exact

FEWEST = 2  # minimum number of losses to compare
DEFAULTS = (
    panel("ranking", m=0.3),
    panel("distance_sensitive"),
    panel("facenet"),
    panel("angular"),
)


class PanelPair(Kind):
    """State field for the indices of two different panels; invalid values become (0, 1), and a URL counts from 1."""

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
    """Two to four losses with common points.

    Attributes:
        panels: Two to four losses with their parameters.
        pair: Indices in `panels` of the two losses that are subtracted and tested for equality.
        clamp: Use the losses clamped to their range instead of the raw ones.
        orders: Sum the loss over both orders of the positive pair, (a, p, n) and (p, a, n).
        fit: Multiply the second loss of the pair by the factor that fits the first loss best.
        space: Space on which equality is tested.
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
    landscape: Annotated[bool, Flag()] = False  # True to show the energies of the pair as 3-D surfaces
    # mass of the marbles that roll on the surfaces; 0 for gradient flow
    mass: Annotated[float, NumberKind(0.0, HEAVIEST)] = 0.0
    view: Annotated[tuple[float, float, float], WindowKind(number=exact)] = (0.25, 0.1, 1.5)


def compare_with_default(scene: Scene) -> ComparisonView:
    """Return a comparison of a scene's loss with the first different loss in DEFAULTS; the triplet is that of the
    scene.
    """
    other = next(each for each in DEFAULTS if each.loss != scene.loss)
    return ComparisonView(
        panels=(Panel(scene.loss, scene.hyper), other),
        anchor=scene.anchor,
        positive=scene.positive,
        negative=scene.negative,
        probe=scene.probe,
        view=scene.view,
    )
