"""Sidebar widgets for choosing a published protocol, and a panel that describes it and can start its runs."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

from dmlcore import data, losses
from dmlcore.data import DataError
from dmlcore.experiments import protocols, studies
from dmlcore.experiments.protocols import Protocol, ProtocolRequest
from dmlcore.experiments.studies import PRETRAINING, StudyRun
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.runs import RunStore
from pages.shared.widgets import machines, menu
from pages.shared.widgets.forms import Form
from pages.shared.widgets.spec_form.values import fill
from pages.shared.words import sentences as words
from pages.shared.words.titles import data_choice, data_choices

FOLD = "protocol.fold"
PUBLISHED = "Protocol"  # value of the form key "begin" while the form follows a protocol


@cache
def _offline_first() -> list[str]:
    """Return the protocol names, starting with the protocols that need no download."""
    return sorted(protocols.names(), key=lambda name: data.describe(protocols.read(name).data).needs_files)


def sidebar(form: Form) -> None:
    """Show widgets for protocol, data set, loss and run; each choice fills the whole form with the spec of that run."""
    name = form.choice(
        "protocol.name",
        "Protocol",
        _offline_first(),
        words=lambda name: protocols.read(name).title,
        help="Trains, selects and reports as a publication does. All settings below follow it until you change them.",
        on_change=_use_protocol,
        args=(form,),
    )
    if form.values.get("protocol.applied") != name:
        _fill(form)
    again: dict[str, Any] = {"on_change": _fill_from_widgets, "args": (form,)}
    form.choice("protocol.data", "Data set of the protocol", data_choices(), words=data_choice, **again)
    form.choice("protocol.loss", "Loss (name in the source)", _losses(name), words=_loss_title(name), **again)
    if (runs := _runs(form)) and len(runs) > 1:
        form.choice(FOLD, "Run", list(runs), **again)


def restore(form: Form, name: str, spec: RunSpec) -> bool:
    """Fill the form with the spec of a run of the protocol `name`; return False if this protocol does not exist."""
    if name not in protocols.names():
        return False
    values = {"protocol.data": spec.data.name, "protocol.loss": protocols.read(name).label(spec.loss.name)}
    form.fill({"begin": PUBLISHED, "protocol.name": name, "protocol.applied": name, FOLD: None} | values)
    form.fill({FOLD: next((run for run, entry in _runs(form).items() if entry.spec == spec), None)})
    return True


def panel(form: Form) -> None:
    """Show the description of the protocol, the number of its runs, and a button and a command to start all of them."""
    request, protocol = _request(form), protocols.read(form.values["protocol.name"])
    with st.container(border=True, key="protocol"):
        st.markdown(f"**{protocol.title}**: {protocol.sentence}")
        st.caption(f"{protocol.source}. Weights are chosen by {protocol.selection}.")
        _what_is_open(protocol)
        try:
            entries = _entries(request)
        except (SpecError, DataError, OSError) as error:
            st.text(words.plain(error))
            return
        steps = sum(entry.spec.schedule.steps for entry in entries)
        st.markdown(
            f"The whole protocol takes {len(entries)} run{'s' if len(entries) > 1 else ''} with at most {steps:,} "
            "steps. **Step 3** starts only the run in the sidebar."
        )
        _queue_all(request, entries)
        st.caption("Run the whole protocol from the command line; repeat the command to resume it and print a summary:")
        st.code(machines.on_command_line(_command(request)), language="bash", wrap_lines=True)


def _queue_all(request: ProtocolRequest, entries: list[StudyRun]) -> None:
    """Show a button that queues the missing runs, at most MAX_QUEUED at a time.

    Each button press uses its own token, so that a double click queues nothing twice.
    """
    if any(entry.variant == PRETRAINING for entry in entries):
        st.caption("These runs depend on each other. Start them from the command line.")
        return
    store = RunStore()
    missing = [entry for entry, run in zip(entries, studies.find(entries, store), strict=True) if run is None]
    if not missing:
        st.caption("All runs of this protocol exist. See Runs.")
        return
    token = st.session_state.setdefault("protocol-token", secrets.token_hex(8))
    few = missing[: launch.MAX_QUEUED]
    label = f"Queue {len(few)} run{'s' if len(few) > 1 else ''}" + (f" of {len(missing)}" if few != missing else "")
    if st.button(label, key=f"queue-{token}", icon=":material/playlist_add:"):
        st.session_state["protocol-token"] = secrets.token_hex(8)
        try:
            made = [launch.launch(entry.spec, store, backend=machines.chosen()) for entry in few]
        except (launch.JobError, DataError, OSError) as error:
            st.text(words.plain(error))
            return
        menu.go("runs", {"run": ",".join(made[:4])})


def _what_is_open(protocol: Protocol) -> None:
    parts = {
        "Left open by the source": protocol.open,
        "Decided here": protocol.decided,
        "Not implemented here": protocol.missing,
    }
    if any(parts.values()):
        with st.expander("Open points of the source, and our decisions"):
            for title, texts in parts.items():
                if texts:
                    st.markdown(f"**{title}**\n" + "\n".join(f"- {text}" for text in texts))


def _request(form: Form) -> ProtocolRequest:
    values = form.values
    root = (values.get("data.root") or "").strip()
    given = (f'data.root="{root}"',) if root and values.get("data.name") == values["protocol.data"] else ()
    return ProtocolRequest(
        protocol=values["protocol.name"],
        data=values["protocol.data"],
        loss=values["protocol.loss"],
        overrides=given,
    )


@st.cache_data(max_entries=32, ttl=600, show_spinner="Reading the data set for the length of an epoch …")
def _entries(request: ProtocolRequest) -> list[StudyRun]:
    return request.entries()


def _runs(form: Form) -> dict[str, StudyRun]:
    """Return the runs of the chosen protocol by display name; {} if the protocol or its data cannot be read."""
    try:
        entries = _entries(_request(form))
    except (SpecError, DataError, OSError):
        return {}
    several = len({entry.seed for entry in entries}) > 1
    return {f"{e.variant}, seed {e.seed}" if several else e.variant: e for e in entries}


def _use_protocol(form: Form) -> None:
    form.values["protocol.name"] = st.session_state[form.widget_key("protocol.name")]
    _fill(form)


def _fill(form: Form) -> None:
    """Fill the form with the data set and loss of the chosen protocol, then with the spec of its first run."""
    name = form.values["protocol.name"]
    protocol = protocols.read(name)
    here = protocol.data if protocol.data in data.names() else data.names()[0]
    choices = {
        "protocol.data": here,
        "protocol.loss": protocol.label(protocol.base.loss.name),
        "protocol.applied": name,
    }
    form.fill(choices | {FOLD: None})
    _fill_run(form)


def _fill_from_widgets(form: Form) -> None:
    for key in ("protocol.data", "protocol.loss", FOLD):
        form.values[key] = st.session_state.get(form.widget_key(key), form.values.get(key))
    _fill_run(form)


def _fill_run(form: Form) -> None:
    if runs := _runs(form):
        chosen = form.values.get(FOLD) or ""
        fill(form, (runs.get(chosen) or next(iter(runs.values()))).spec)


def _losses(protocol: str) -> list[str]:
    """Return the loss names for the select box: first those used in the protocol's source, then all others."""
    spec = protocols.read(protocol)
    first = list(dict.fromkeys([spec.label(spec.base.loss.name), *spec.losses]))
    known = {spec.losses.get(word, word) for word in first}
    return [*first, *(name for name in losses.LOSSES if name not in known)]


def _loss_title(protocol: str) -> Callable[[str], str]:
    named = protocols.read(protocol).losses
    return lambda word: (
        f"{losses.describe(named[word]).title} ({word})" if word in named else losses.describe(word).title
    )


def _command(request: ProtocolRequest) -> str:
    words = ["python", "-m", "dmlcore", "protocol", request.protocol, "--data", request.data, "--loss", request.loss]
    return shlex.join([*words, *request.overrides])
