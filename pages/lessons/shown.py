"""Conversion of a figure's URL parameters to the dmlcore types against which the answers of a lesson are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmlcore.lessons.recordings import Recorded
from dmlcore.lessons.stages import (
    STAGES,
    ChargesShown,
    Shown,
    StudyShown,
    TransportShown,
    TripletShown,
    studies_offered,
)
from dmlcore.pooling.analysis.red_blue import SIDE
from dmlcore.simulation import Spec
from pages.lessons.state import LessonPlace
from pages.losses.charges import service as charges_service
from pages.losses.charges.state import ChargesState
from pages.losses.fields.sphere import service as sphere_service
from pages.losses.fields.sphere.state import SphereScene
from pages.pooling.transport.state import TransportState, steps
from pages.shared.plane.service import as_tensors
from pages.shared.plane.state import POINTS, Scene
from pages.shared.state.page_state import PageState
from pages.shared.state.untrusted import bounded

STATE: Mapping[str, type[PageState]] = {
    "plane": Scene,
    "sphere": SphereScene,
    "charges": ChargesState,
    "transport": TransportState,
}


def recorded(place: LessonPlace, query: Mapping[str, str]) -> Recorded[Any]:
    """Return the frame of the lesson step's recording selected by the URL parameter `step`, by default the first."""
    kind: type[Recorded[Any]] = STAGES[place.step.figure.on].kind
    return kind(int(bounded(query.get("step"), 0, len(kind.frames()) - 1, 0)))


def shown(place: LessonPlace, query: Mapping[str, str]) -> Shown:
    """Return the figure of a lesson step in the state given by the URL parameters."""
    figure = place.step.figure
    if figure.on == "study":
        name = query.get("study", "")
        return StudyShown(name if name in studies_offered() else figure.settings["study"])
    if issubclass(STAGES[figure.on].kind, Recorded):
        return recorded(place, query)
    state = STATE[figure.on].from_query(query)
    if isinstance(state, Scene):
        return TripletShown(state.module(), *as_tensors(state), "plane")
    if isinstance(state, SphereScene):
        a, p, n = (sphere_service.unit(state, name) for name in POINTS)
        return TripletShown(state.module(), a, p, n, state.on)
    if isinstance(state, ChargesState):
        spec = Spec(**{name: getattr(state, name) for name in Spec.__dataclass_fields__})
        return ChargesShown(spec, charges_service.TIMELINE.step(query))
    assert isinstance(state, TransportState)
    pixels = steps(state.pixels).reshape(SIDE, SIDE, 2)
    return TransportShown(pixels, np.asarray(steps(state.prototypes)), state.mu, state.epsilon)
