"""Settings page, step 2 of a new run: all settings in the sidebar, a preview of the run in the main area."""

from __future__ import annotations

import streamlit as st

from dmlcore.spec import RunSpec
from dmlcore.spec.sections import ForkSpec
from pages.shared.widgets.error_boundary import refusal
from pages.shared.widgets.forms import Form
from pages.shared.widgets.spec_form import form as spec_form
from pages.shared.widgets.spec_form import protocol as protocol_form
from pages.shared.words import sentences as words
from pages.training.new_run import launch_panel
from pages.training.new_run.settings import preview as preview_view
from pages.training.new_run.settings import steps

START = "start-settings"  # key of the start button


def main() -> None:
    head = steps.StepHead(
        "settings",
        "Settings",
        "A network learns to embed samples of the same class close together. Train the example, or change its settings "
        "in the sidebar. If it is closed, open it with » at the top.",
    )
    form = steps.form()
    steps.begin(form, "settings", form.widget_key("begin"))
    with st.sidebar:
        spec_form.sidebar(form)
    form.values[steps.FAULTS] = form.faults
    spec, faults = steps.spec_of(form)
    if spec is None:
        _lead(head, form, None, ready=False)
        refusal(steps.REFUSED, *faults)
        launch_panel.show(None, faults, key=START, summarised=False)
        return
    if spec.fork.run:
        _goes_on(form, spec)
    if form.values["begin"] == spec_form.PUBLISHED:
        protocol_form.panel(form)
    summary, obstacles = steps.examine(spec)
    refusal(steps.REFUSED, *obstacles)
    ready = not obstacles
    _lead(head, form, spec, ready=ready)
    query = steps.carried(form, spec)
    steps.write_address(form, "settings", query)
    pressed = launch_panel.show(spec, obstacles, key=START, summarised=False)
    steps.start(spec, pressed=pressed)
    preview_view.show(spec, summary, linked=bool(query), ready=ready)


def _lead(head: steps.StepHead, form: Form, spec: RunSpec | None, *, ready: bool) -> None:
    query = {"data": form.values["data.name"]} | steps.carried(form, spec)
    head.row(query)
    head.lead("start", "Next: start", query, ready=ready)


def _goes_on(form: Form, spec: RunSpec) -> None:
    """Explain that the spec continues another run, and offer to train from scratch instead."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("A fork", icon=":material/fork_right:", color="blue")
        st.text(words.plain(f"Continues from step {spec.fork.step:,} of {spec.fork.run}."))
        st.button(
            "Train from scratch instead",
            key="unfork",
            on_click=lambda: form.fill({f"fork.{key}": value for key, value in ForkSpec().model_dump().items()}),
        )


main()
