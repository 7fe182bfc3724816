"""Figure of a lesson step: a component of another page, reduced to a single control."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st

from dmlcore.experiments import studies
from dmlcore.lessons.stages import studies_offered
from pages.lessons.figure import recording
from pages.lessons.shown import STATE, recorded
from pages.lessons.state import LessonPlace, figure_state
from pages.losses.charges import service as charges_service
from pages.losses.charges.state import ChargesState
from pages.losses.charges.state import options as charges_options
from pages.losses.fields.sphere import service as sphere_service
from pages.losses.fields.sphere.state import STATES, SphereScene
from pages.pooling.transport import service as transport_service
from pages.pooling.transport.state import TransportState
from pages.pooling.transport.state import options as transport_options
from pages.shared.plane import service as plane_service
from pages.shared.plane.state import Scene
from pages.shared.widgets.component import KEPT, component
from pages.shared.widgets.linked_box import linked
from pages.shared.widgets.live_component import mount
from pages.shared.widgets.study import scores as study_scores

# controls to hide by kind of figure, in addition to the sliders that the lesson step does not use
HIDDEN = {
    "plane": ("situations", "figures", "take", "points", "shown", "loss-menu", "margin", "margins", "explain", "reset"),
    "sphere": ("presets", "points", "shown", "take"),
    "charges": ("presets", "start", "motion", "shown", "take"),
    "transport": ("story", "presets", "brush", "take", "export", "sweeps", "charts"),
}


def draw(place: LessonPlace) -> None:
    """Draw the figure of a lesson step."""
    _DRAWN[place.step.figure.on](place, figure_state(place, st.query_params.to_dict()))


def hidden(place: LessonPlace) -> list[str]:
    """Return the names of the controls to hide, so that only the control used by the lesson step is visible."""
    figure = place.step.figure
    parts = [*HIDDEN[figure.on]]
    state = STATE[figure.on].from_query(figure.settings)
    hyper = getattr(state.law if isinstance(state, ChargesState) else state, "hyper", {})
    names = [*hyper, "mu", "epsilon"]
    parts += [name for name in names if name != figure.control]
    if figure.control == "loss":
        return [name for name in parts if name != "loss-menu"]
    if figure.control not in names:
        parts.append("loss")  # the only control is a point or the time, so the loss menu is hidden too
    return parts


def _plane(place: LessonPlace, query: Mapping[str, str]) -> None:
    scene = Scene.from_query(query)
    link = urlencode(scene.to_query())
    mount(
        "kit/plane",
        scene,
        plane_service.answer,
        key=place.key,
        name="scene",
        hide=hidden(place),
        query=link,
        grid=None,
    )


def _sphere(place: LessonPlace, query: Mapping[str, str]) -> None:
    kept = (st.session_state.get(place.key) or {}).get("scene")
    scene = SphereScene.of(kept) if kept else SphereScene.from_query(query)
    states = [state.to_json() for state in STATES]
    mount(
        "losses/fields/sphere",
        scene,
        sphere_service.answer,
        key=place.key,
        name="scene",
        writes=("scene", "ask"),
        hide=hidden(place),
        states=states,
    )


def _charges(place: LessonPlace, query: Mapping[str, str]) -> None:
    spec = ChargesState.from_query(query)
    mount(
        "losses/charges",
        spec,
        charges_service.TIMELINE.answer,
        key=place.key,
        hide=hidden(place),
        query=spec.to_query(),
        step=charges_service.TIMELINE.step(query),
        options=charges_options(),
    )


def _transport(place: LessonPlace, query: Mapping[str, str]) -> None:
    state = TransportState.from_query(query)
    options = transport_options() | {"table": transport_service.TABLE, "kept": KEPT}
    mount(
        "pooling/transport",
        state,
        transport_service.answer,
        key=place.key,
        hide=hidden(place),
        options=options,
    )


def _study(place: LessonPlace, query: Mapping[str, str]) -> None:
    first = place.step.figure.settings["study"]
    names = [first, *(name for name in studies_offered() if name != first)]
    name = linked("Study", names, "study", lambda each: studies.read(each).title)
    study, results = studies.read(name), studies.load(name)
    st.markdown(study.question)
    if results is not None:
        study_scores.bars(name, list(results.runs))


def _recording(place: LessonPlace, query: Mapping[str, str]) -> None:
    shown = recorded(place, query)
    data = recording.data_of(place.step.figure.on) | {"at": shown.frame}
    component("lessons/recording")(key=place.key, data=data)


_DRAWN = {
    "plane": _plane,
    "sphere": _sphere,
    "charges": _charges,
    "transport": _transport,
    "projections": _recording,
    "ensemble": _recording,
    "neighbours": _recording,
    "study": _study,
}
