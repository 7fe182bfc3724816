"""A drawn figure is sent to later visitors unchanged and redrawn for other inputs."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

SCRIPT = """
import streamlit as st

from pages.shared.widgets.drawn import drawn
from tests.pages.shared.widgets import test_drawn as told

with st.container():
    drawn(told.table, told.ROWS, st.query_params.get("title", "Scores"))
st.markdown("below")
"""
ROWS = [{"method": "a", "score": 1.0}]
times: list[str] = []


def table(rows: list[dict[str, object]], title: str) -> None:
    import streamlit as st

    times.append(title)
    with st.expander(title):
        st.dataframe(rows, hide_index=True)
        st.caption(f"{len(rows)} rows")


def shown(title: str) -> tuple[str, list[str], list[str], list[str]]:
    app = AppTest.from_string(SCRIPT)
    app.query_params["title"] = title
    app.run()
    assert not app.exception
    (frame,) = app.dataframe
    return (
        frame.value.to_csv(index=False),
        [box.label for box in app.expander],
        [line.value for line in app.expander[0].caption],
        [line.value for line in app.markdown],
    )


def test_two_visitors_see_the_same_and_it_is_drawn_once_for_each_title() -> None:
    times.clear()
    first, second, other = shown("Scores"), shown("Scores"), shown("Others")
    assert first == second == ("method,score\na,1.0\n", ["Scores"], ["1 rows"], ["below"])
    assert other[1] == ["Others"]
    assert times == ["Scores", "Others"]
