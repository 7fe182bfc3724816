"""Train: choose data, loss and settings in the sidebar, see what will happen, start it as a process of its own."""

from __future__ import annotations

import secrets

import streamlit as st

from dmlcore.data import DataError
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.sections import ForkSpec
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.training import objective
from pages.shared.widgets import menu
from pages.shared.widgets.error_boundary import refusal
from pages.shared.widgets.forms import Form
from pages.shared.widgets.spec_form import folders, preflight
from pages.shared.widgets.spec_form import form as spec_form
from pages.shared.widgets.spec_form import protocol as protocol_form
from pages.shared.widgets.spec_form.preflight import Summary
from pages.shared.words import sentences as words
from pages.training.train.preview import page as preview_view

REFUSED = "Cannot be trained like this"


def main() -> None:
    st.title("Train", anchor=False)
    st.markdown(
        "A network learns to put samples of one class close together. Choose data, loss and settings in the sidebar, "
        "read here what will happen, and start."
    )
    form = Form("train")
    _begin(form)
    with st.sidebar:
        spec_form.sidebar(form)
    spec, faults = None, form.faults
    if not faults:
        try:
            spec = spec_form.spec_of(form)
        except SpecError as error:
            faults = words.faults(error)
    if spec is None:
        _start(None)
        refusal(REFUSED, *faults)
        return
    if spec.fork.run:
        _goes_on(form, spec)
    if form.values["begin"] == spec_form.PUBLISHED:
        protocol_form.panel(form)
    preview = _read(spec)
    hindrances = preflight.problems(spec, preview) if preview else []
    _start(spec if preview is not None and not hindrances else None)
    refusal(REFUSED, *map(words.plain, hindrances))
    preview_view.show(spec, preview, ready=not hindrances)


def _begin(form: Form) -> None:
    """Start from the run that ?like= names, from the spec of ?base=&set=, else from the default."""
    asked = st.query_params.to_dict()
    if "base" in asked and form.values.get("linked") != asked and _follow(form, asked):
        return
    _offer_folder(form)
    like = st.query_params.get("like")
    if like and form.values.get("like") != like:
        try:
            spec = RunStore().open(like).spec
            objective.refuse_unknown(spec)
            spec_form.fill(form, spec)
            form.values["like"] = like
            return
        except RunError:
            st.warning("The address names a run that is not here; these are the defaults.", icon=":material/link_off:")
        except SpecError as error:
            _not_followed("The run of the address has settings that this version does not know", error)
    if "base" not in form.values:
        spec_form.fill(form, spec_form.presets()[spec_form.FIRST])


def _follow(form: Form, asked: dict[str, str]) -> bool:
    """Fill the form with the spec of a link; False, and a sentence, where it cannot be used.

    A folder that nobody here has chosen is left out until it is: a link makes the server read nothing.
    """
    try:
        spec = spec_form.linked(asked)
    except SpecError as error:
        _not_followed("The address asks for settings that cannot be used", error)
        return False
    folder = folders.unread(spec)
    if folder is not None:
        spec = spec.model_copy(update={"data": spec.data.model_copy(update={"root": None})})
    spec_form.fill(form, spec)
    form.fill({"preset": asked["base"]})
    form.values |= {"linked": asked, "folder": folder}
    _offer_folder(form)
    return True


def _not_followed(why: str, error: SpecError) -> None:
    """Say why an address is not followed; what it asks for stands below as it is."""
    st.warning(f"{why}; the form is left as it was.", icon=":material/link_off:")
    st.text(words.plain(error))


def _offer_folder(form: Form) -> None:
    """The folder that the link names, to be read once the visitor says so."""
    folder = form.values.get("folder")
    if not folder or form.values.get("data.root"):
        return

    def read() -> None:
        folders.choose_folder(folder)
        form.fill({"data.root": folder})
        form.values["folder"] = None

    with st.container(border=True):
        st.markdown("The address names a folder of this machine. **Nothing in it has been read.**")
        st.text(folder)
        st.button("Read this folder", key="read-folder", icon=":material/folder_open:", on_click=read)


def _read(spec: RunSpec) -> Summary | None:
    try:
        return preflight.summary(spec.data, spec.seed)
    except (DataError, OSError) as error:
        refusal(REFUSED, words.plain(error))
        return None


def _goes_on(form: Form, spec: RunSpec) -> None:
    """Say that the spec is one of a fork, and how to make it a training run from the beginning."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("A fork", icon=":material/fork_right:", color="blue")
        st.text(words.plain(f"Goes on from step {spec.fork.step:,} of {spec.fork.run}."))
        st.button(
            "Train from the beginning instead",
            key="unfork",
            on_click=lambda: form.fill({f"fork.{key}": value for key, value in ForkSpec().model_dump().items()}),
        )


def _start(spec: RunSpec | None) -> None:
    """The button, which waits for a spec that can be trained; a double click finds its token used, the run the same."""
    submits = preflight.submits()
    token: str = st.session_state.setdefault("train-token", secrets.token_hex(16))
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = st.button(
            "Start training", key="start", type="primary", icon=":material/play_arrow:", disabled=spec is None
        )
        st.caption("Starts a process of its own: you may close this page, and find it again under Runs.")
    if pressed and spec is not None:
        try:
            run_id = submits.launch(token, spec, RunStore())
        except (launch.JobError, DataError, SpecError, OSError) as error:
            refusal(REFUSED, words.plain(error))
            return
        menu.go("runs", {"run": run_id})
    elif submits.used(token):
        st.session_state["train-token"] = secrets.token_hex(16)


main()
