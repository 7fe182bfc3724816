"""Code shared by the three pages of a new run (Data, Settings, Start): header, form, and settings in the URL."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st

from dmlcore.data import DataError
from dmlcore.experiments import embedding_sets
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.training import objective
from pages.shared.state import spec_link
from pages.shared.widgets import menu
from pages.shared.widgets.error_boundary import refusal
from pages.shared.widgets.forms import Form
from pages.shared.widgets.spec_form import folders, preflight, values
from pages.shared.widgets.spec_form import form as spec_form
from pages.shared.widgets.spec_form import protocol as protocol_form
from pages.shared.widgets.spec_form.preflight import Summary
from pages.shared.words import sentences as words

REFUSED = "Cannot train with these settings"
# key of the input errors in the form's values; the Start page needs them, because it draws no input fields
FAULTS = "faults"


def form() -> Form:
    """Return this session's form, shared by the three pages of a new run."""
    return Form("train")


class StepHead:
    """Header of a new-run page: title, links to the three pages, and a link to the next page."""

    def __init__(self, here: str, title: str, sentence: str) -> None:
        line = st.container(horizontal=True, vertical_alignment="center", key="views")
        line.title(title, anchor=False, width="content")
        self._here = here
        self._row = line.container(horizontal=True, width="content")
        self.onward = line.container(key="primary-links-next", width="content")
        st.markdown(sentence)

    def row(self, query: menu.Query) -> None:
        """Draw the links to the three pages, each with the URL query parameters `query`."""
        menu.row(self._here, self._row, query)

    def lead(self, to: str, label: str, query: menu.Query, *, ready: bool) -> None:
        """Draw the link to the page `to`, disabled unless `ready`."""
        menu.link(to, label, query, icon="arrow_forward", into=self.onward, disabled=not ready)


def carried(form: Form, spec: RunSpec | None) -> dict[str, str]:
    """Return the URL query parameters that open a new-run page with these settings.

    Returns {} if there is no spec or it does not fit into a link; the settings are then kept only in the session.
    """
    query = (spec and spec_link.query(spec)) or {}
    if query and form.values.get("begin") == spec_form.PUBLISHED:
        query |= {"protocol": form.values["protocol.name"]}
    return query


SETTINGS = ("base", "set", "like", "protocol")  # URL query parameters that fill the form
_WRITTEN = "addresses written"  # key of the set of URLs that a page has written since it was opened


def begin(form: Form, here: str, anchor: str) -> None:
    """Fill the form with the settings in the URL, or, if the form is still empty, with the default example.

    The URL parameter `like` names a run; `base` and `set` describe a spec. Settings in the URL are not read twice in a
    row, so that the Back button returns to the current settings. A URL that this page wrote since it was opened is not
    read either, because the browser may send an old URL while a new one is being transmitted. A folder in the URL is
    ignored until the visitor allows it with a button that this function draws.

    Args:
        form: The form shared by the three pages of a new run.
        here: Name of the page.
        anchor: Key of a widget that the page always draws. Streamlit drops the widget's state when the visitor leaves
            the page, so a missing state shows that the page was just opened.
    """
    if anchor not in st.session_state or _WRITTEN not in form.values:
        form.values[_WRITTEN] = set()
    asked = _settings_of_address()
    known = asked == form.values.get(f"followed {here}") or urlencode(asked) in form.values[_WRITTEN]
    if (asked.get("base") or asked.get("like")) and not known:
        come = _follow if "base" in asked else _train_like
        if come(form, asked):
            form.values[f"followed {here}"] = asked
    _offer_folder(form)
    if "base" not in form.values:
        _fill(form, spec_link.presets()[spec_link.FIRST])


def write_address(form: Form, here: str, query: Mapping[str, str]) -> None:
    """Write the settings into the URL, so that reloading the page or copying the link restores them.

    The URL is not changed while it names a folder that the visitor has not yet allowed to be read.
    """
    asked = _settings_of_address()
    settings = {key: value for key, value in query.items() if key in SETTINGS}
    if settings == asked or _unread_folder(form):
        return
    form.values[_WRITTEN] |= {urlencode(asked), urlencode(settings)}
    form.values[f"followed {here}"] = settings
    others = {key: value for key, value in st.query_params.to_dict().items() if key not in SETTINGS}
    st.query_params.from_dict(others | settings)


def _settings_of_address() -> dict[str, str]:
    return {key: value for key, value in st.query_params.items() if key in SETTINGS}


def forget_addresses(form: Form) -> None:
    """Make the three pages of a new run read their URLs again, because the data set has changed."""
    for here in menu.PLACES["settings"].pages:
        form.values.pop(f"followed {here}", None)


def _train_like(form: Form, asked: Mapping[str, str]) -> bool:
    """Fill the form with the spec of the run that the URL parameter `like` names; return True on success.

    If the run does not exist or its spec cannot be used, show a warning and return False.
    """
    try:
        run = RunStore().open(asked["like"])
        spec = embedding_sets.training_spec(run) if run.is_embedding_set else run.spec
        spec_link.refuse_own_network(spec)
        objective.refuse_unknown(spec)
    except RunError:
        st.warning(
            "The address names a run that does not exist here. The form is unchanged.", icon=":material/link_off:"
        )
        return False
    except (DataError, SpecError) as error:
        _not_followed("The run in the address has settings that this form cannot use", error)
        return False
    _fill(form, spec)
    form.fill({"begin": spec_form.QUICK})
    form.values["folder"] = None
    return True


def _fill(form: Form, spec: RunSpec) -> None:
    values.fill(form, spec)
    form.values[FAULTS] = []


def _follow(form: Form, asked: Mapping[str, str]) -> bool:
    """Fill the form with the spec in the URL; if the spec is invalid, show a warning and return False.

    A folder in the URL is ignored until the visitor allows it, because a link alone must not make the server read
    files.
    """
    try:
        spec = spec_link.linked(asked)
    except SpecError as error:
        _not_followed("The settings in the address are invalid", error)
        return False
    folder = folders.unread(spec)
    if folder is not None:
        spec = spec.model_copy(update={"data": spec.data.model_copy(update={"root": None})})
    _fill(form, spec)
    form.fill({"preset": asked["base"]})
    if not protocol_form.restore(form, asked.get("protocol", ""), spec):
        form.fill({"begin": spec_form.QUICK})
    form.values["folder"] = folder
    return True


def _not_followed(why: str, error: Exception) -> None:
    """Show a warning that the settings in the URL are ignored, with the reason `why` and the error as plain text."""
    st.warning(f"{why}. The form is unchanged.", icon=":material/link_off:")
    st.text(words.plain(error))


def _unread_folder(form: Form) -> str | None:
    """Return the folder named in the URL if the visitor has not yet allowed it to be read, otherwise None."""
    return None if form.values.get("data.root") else form.values.get("folder")


def _offer_folder(form: Form) -> None:
    """Show a button that allows the folder named in the URL to be read."""
    folder = _unread_folder(form)
    if not folder:
        return

    def read() -> None:
        folders.choose_folder(folder)
        form.fill({"data.root": folder})
        form.values["folder"] = None

    with st.container(border=True):
        st.markdown("The address names a folder of this machine. **Nothing in it has been read.**")
        st.text(folder)
        st.button("Read this folder", key="read-folder", icon=":material/folder_open:", on_click=read)


def spec_of(form: Form) -> tuple[RunSpec | None, list[str]]:
    """Return the run spec in the form and an empty list, or None and a list of errors."""
    if faults := form.faults or form.values.get(FAULTS, []):
        return None, list(faults)
    try:
        return values.spec_of(form), []
    except SpecError as error:
        return None, words.faults(error)


def examine(spec: RunSpec) -> tuple[Summary | None, list[str]]:
    """Return a summary of the data, or None if unreadable, and one sentence for each obstacle to training."""
    try:
        summary = preflight.summary(spec.data, spec.seed)
    except (DataError, OSError) as error:
        return None, [words.plain(error)]
    return summary, [words.plain(problem) for problem in preflight.problems(spec, summary)]


def start(spec: RunSpec | None, processes: int = 1, *, pressed: bool, button: str = "start") -> None:
    """If `pressed`, start a run and open the Runs page; a double click starts only one run.

    Args:
        spec: The spec; None starts nothing.
        processes: Number of processes that train the run.
        pressed: True if the button was pressed in this run of the script.
        button: Name of the button, if a page has several that start different runs.
    """
    submits = preflight.submits()
    name = f"train-token {button}"
    token: str = st.session_state.setdefault(name, secrets.token_hex(16))
    if pressed and spec is not None:
        try:
            run_id = submits.launch(token, spec, RunStore(), processes)
        except (launch.JobError, DataError, SpecError, OSError) as error:
            refusal(REFUSED, words.plain(error))
            return
        menu.go("runs", {"run": run_id})
    elif submits.used(token):
        st.session_state[name] = secrets.token_hex(16)
