"""Lessons: one claim, one figure and one control per step, and a question that the figure answers."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.lessons import service
from pages.lessons.figure import panel as figure_page
from pages.lessons.shown import shown
from pages.lessons.state import LessonAnswer, LessonPlace, known, place_of
from pages.shared.widgets import menu
from pages.shared.widgets.component import component

KEY = "lessons"
# Text, figure and question are stacked on a phone; on wide screens the figure is next to text and question.
STYLE = """<style>
@media (min-width: 641px) {
  .st-key-lesson { display: grid; grid-template: auto 1fr / minmax(0, 1fr) minmax(0, 2fr); gap: .5rem 2rem; }
  .st-key-lesson_question { margin-top: 1rem; }
  .st-key-lesson > :has(> .st-key-lesson_figure), .st-key-lesson > .st-key-lesson_figure { grid-area: 1 / 2 / 3 / 3; }
}
</style>"""


def _follow() -> None:
    """Write the reader's choice, a lesson step or the list of lessons, into the URL."""
    wanted = (st.session_state.get(KEY) or {}).get("go")
    if isinstance(wanted, dict):
        there = place_of({name: str(wanted.get(name, ""))[:80] for name in ("lesson", "step")})
        st.query_params.from_dict(menu.onward(there.to_query() if there else {}))


def _nothing() -> None:
    """Do nothing. Streamlit drops values that a component writes to a key without a callback."""


def panel(here: LessonPlace | None) -> None:
    """Show the list of lessons, or the question and the navigation of step `here`; the browser stores the answers."""
    data: dict[str, Any] = service.data_of(here) | {"verdict": None}
    written = st.session_state.get(KEY) or {}
    if here and (answer := LessonAnswer.of(written.get("ask"), here)):
        data["verdict"] = service.verdict(answer, shown(here, answer.query))
    component("lessons")(key=KEY, data=data, on_go_change=_follow, on_ask_change=_nothing)


@st.fragment
def figure(here: LessonPlace) -> None:
    """Draw the figure of a lesson step."""
    figure_page.draw(here)


here = place_of(st.query_params.to_dict())
if here is None:
    st.title("Lessons", anchor=False)
    st.markdown(
        "Each lesson takes three to five minutes. Each step makes one claim about one figure. **Use the figure** to "
        "answer its question."
    )
    if st.query_params.get("lesson"):
        st.caption(f":material/link_off: This lesson does not exist. Choose one of the {len(known())} lessons below.")
    panel(None)
else:
    st.title(here.lesson.title, anchor=False)
    st.markdown(here.lesson.claim)
    st.html(STYLE)
    with st.container(key="lesson"):
        with st.container(key="lesson_text"):
            st.subheader(f"{here.number}. {here.step.title}", anchor=False)
            st.markdown(here.step.text)
        with st.container(key="lesson_figure"):
            figure(here)
        with st.container(key="lesson_question"):
            panel(here)
