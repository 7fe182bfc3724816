"""Lookup of single keys in the session state gives the same values as Streamlit's filtered state."""

from __future__ import annotations

import pytest
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.testing.v1 import AppTest

from pages.shared.widgets import session_state

WHOLE = property(lambda state: state._state.filtered_state)  # original implementation of Streamlit


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SafeSessionState, "filtered_state", WHOLE)
    session_state.look_up_one_by_one()


def form() -> None:
    import streamlit as st

    st.session_state["plain"] = 3
    st.session_state.setdefault("empty", None)
    st.number_input("Empty", value=None, key="empty")
    st.number_input("Steps", key="steps", value=None if st.session_state.get("steps") is None else "min")
    st.selectbox("Loss", ["a", "b"], key="loss", index=1)
    st.slider("Keyless", 0, 5, 2)
    st.multiselect("Gone", ["x"], key="gone") if st.session_state.get("loss") == "b" else None


def test_lookups_say_what_the_whole_state_says_over_reruns(one_by_one: None) -> None:
    app = AppTest.from_function(form).run()
    for step in (
        lambda: app.number_input(key="steps").set_value(7),
        lambda: app.number_input(key="empty").set_value(2.5),
        lambda: app.selectbox(key="loss").select("a"),
        lambda: app.number_input(key="empty").set_value(None),
    ):
        lookup, whole = app.session_state._state.filtered_state, WHOLE.fget(app.session_state._state)
        assert isinstance(lookup, session_state.Lookup)
        assert dict(lookup) == whole == {key: lookup[key] for key in whole}
        assert whole.keys() >= {"plain", "empty", "steps", "loss"}
        for absent in ("never", 5, *app.session_state._state._state._new_widget_state):
            assert absent not in lookup
        step()
        app.run()
        assert not app.exception
    assert (app.number_input(key="steps").value, app.number_input(key="empty").value) == (7, None)


def test_a_form_of_many_fields_reads_each_value_a_few_times_only(
    one_by_one: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def many() -> None:
        import streamlit as st

        for number in range(40):
            st.number_input(f"{number}", key=f"field {number}", value=None)

    app, read = AppTest.from_function(many).run(), []
    state = type(app.session_state._state._state)
    plain = state.__getitem__
    monkeypatch.setattr(state, "__getitem__", lambda self, key: read.append(key) or plain(self, key))
    app.run()
    assert 40 <= len(read) < 40 * 10  # copying the whole state for each field would read 1,600
