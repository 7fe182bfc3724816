"""Work that a page starts runs on machines that the owner has named, regardless of the session state."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def script() -> None:
    import streamlit as st

    from pages.shared.widgets import machines

    machines.sidebar()
    st.text(f"{machines.chosen()}|{machines.chosen_title()}")


def test_a_visitor_chooses_among_what_the_owner_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_BACKENDS", "ray:127.0.0.1:6379")
    app = AppTest.from_function(script).run()
    assert app.text[0].value == "|This machine"
    app.sidebar.selectbox[0].select("ray:127.0.0.1:6379").run()
    assert app.text[0].value == "ray:127.0.0.1:6379|Ray (127.0.0.1:6379)"
    monkeypatch.setenv("DML_BACKENDS", "nonsense")
    app.run()
    assert "expected local, ray" in app.sidebar.warning[0].value
    assert app.text[0].value == "|This machine"


def test_an_address_that_nobody_named_is_never_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone() -> None:
        import streamlit as st

        from pages.shared.widgets import machines

        st.session_state["machine"] = "ray:evil.example:6379"
        st.text(machines.chosen())

    monkeypatch.setenv("DML_BACKENDS", "ray:127.0.0.1:6379")
    assert AppTest.from_function(alone).run().text[0].value == ""
    monkeypatch.delenv("DML_BACKENDS")
    app = AppTest.from_function(script).run()
    assert not app.sidebar.selectbox
