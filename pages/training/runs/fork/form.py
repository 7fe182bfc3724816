"""Form of a fork: its checkpoint, loss, learning rate, training split and number of steps."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable
from html import escape

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.data import DataError, Dataset
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training.errors import TrainingError
from dmlcore.training.forks import fork_spec
from pages.shared.server import thumbnails
from pages.shared.state import spec_link
from pages.shared.widgets.error_boundary import refusal
from pages.shared.widgets.forms import Bounds, Form, number
from pages.shared.widgets.spec_form import form as spec_form
from pages.shared.widgets.spec_form import preflight, values
from pages.shared.widgets.spec_form.fields import field
from pages.shared.words import sentences as words

REFUSED = "Cannot start this fork"
MOST_STEPS = 10_000_000  # of a schedule
MOST_SHOWN = 30  # largest number of images shown of a training class, and of excluded samples
LONGEST_LIST = 20_000  # largest number of characters in the list of excluded samples
STRIP = """<style>
.samples { display: flex; flex-wrap: wrap; gap: 8px; font-size: 11px; }
.samples figure { margin: 0; width: 56px; text-align: center; }
.samples img { width: 56px; height: 56px; object-fit: contain; border-radius: 4px; background: rgb(128 128 128 / .12); }
</style>"""


def show(run: Run, steps: list[int], into: DeltaGenerator) -> int:
    """Draw the form; return the step of the selected checkpoint.

    Args:
        run: The parent run.
        steps: Training steps of its checkpoints.
        into: Container for the list of changes and the start button.
    """
    form = Form("fork")
    if form.values.get("forked") != run.id:
        values.fill(form, run.spec)
        form.values["forked"] = run.id
    step, steps_after = _clock(run, steps, form.faults)
    spec_form.loss_fields(form)
    field(form, "optimiser.learning_rate")
    leave_out: list[int] = []
    without: tuple[int, ...] = ()
    relabel: dict[int, int] = {}
    try:
        data = thumbnails.dataset(run.spec)
        leave_out, without, relabel = _training_split(run, data)
    except (DataError, SpecError) as error:
        _refuse([words.plain(error)], into)
        return step
    if form.faults or steps_after is None:
        _refuse(form.faults, into)
        return step
    try:
        spec = fork_spec.create(
            run,
            step,
            _apply_changes(run.spec, values.spec_of(form), step + steps_after),
            leave_out=leave_out,
            without=without,
            relabel=relabel,
        )
        fork_spec.check(spec, data)
    except (SpecError, TrainingError, DataError) as error:
        _refuse(words.faults(error), into)
        return step
    with into:
        _show_changes(run, spec)
        _start(spec)
    _command(run, spec)
    return step


def _apply_changes(before: RunSpec, shown: RunSpec, steps: int) -> RunSpec:
    """Return `before` with loss, miner and learning rate from `shown`, the form's spec, and with `steps` steps."""
    rate = {"learning_rate": shown.optimiser.learning_rate}
    taken = {
        "loss": shown.loss,
        "miner": shown.miner,
        "optimiser": before.optimiser.model_copy(update=rate),
        "schedule": before.schedule.model_copy(update={"steps": steps}),
    }
    return RunSpec.parse(before.model_copy(update=taken).model_dump())


def _clock(run: Run, steps: list[int], faults: list[str]) -> tuple[int, int | None]:
    """Show the controls for checkpoint and further steps; return the checkpoint's step and the number of further steps.

    The number is None if the input is invalid; the error is then appended to `faults`.
    """
    wanted = st.query_params.get("step", "")
    start = next((step for step in steps if str(step) == wanted), steps[len(steps) // 2])
    if len(steps) > 1:
        step = st.select_slider(
            "From the checkpoint of step",
            steps,
            value=start,
            format_func="{:,}".format,
            key=f"fork-step-{run.id}",
            help="Checkpoints kept during training, and the last one",
        )
    else:
        step = steps[0]
        st.markdown(f"From the checkpoint of step **{step:,}**, the only one of this run.")
    left = run.spec.schedule.steps - step
    more, fault = number(
        "Further steps",
        f"fork-more-{run.id}-{step}",
        Bounds(1, MOST_STEPS - step),
        start=left if left > 0 else max(1, run.spec.schedule.steps // 2),
        whole=True,
        step=50,
        help="Numbered after the steps of the parent: a fork at step 200 continues with step 201",
    )
    if fault:
        faults.append(fault)
    return int(step), None if fault else more


def _training_split(run: Run, data: Dataset) -> tuple[list[int], tuple[int, ...], dict[int, int]]:
    """Show the controls of the training split; return excluded classes, excluded samples, and new labels by sample."""
    train = data.splits["train"]
    classes, counts = np.unique(data.labels[train], return_counts=True)
    names = {int(c): data.class_names[c] for c in classes}
    words = {c: name if name == str(c) else f"{c} · {name}" for c, name in names.items()}
    number = {text: c for c, text in words.items()}
    leave_out = st.multiselect(
        "Classes to leave out of training",
        [c for c in words if c not in run.spec.fork.leave_out],
        format_func=lambda c: f"{words[c]} ({counts[classes == c][0]:,})",
        key=f"fork-leave-{run.id}",
        placeholder="no class",
        help="Validation and test still contain the class, so they show what is forgotten",
    )
    without = _without(run, train)
    with st.expander("Relabel training samples", icon=":material/label:"):
        selected = st.selectbox("Class", list(words), format_func=words.__getitem__, key=f"fork-look-{run.id}")
        chosen = train[data.labels[train] == selected]
        st.html(_strip(run, chosen[:MOST_SHOWN], lambda sample: ""))
        st.caption(
            f"The first {min(MOST_SHOWN, len(chosen))} of {len(chosen):,} samples, in the order of the data set."
        )
        edited = st.data_editor(
            pd.DataFrame({"sample": pd.Series(dtype="Int64"), "class": pd.Series(dtype="str")}),
            num_rows="dynamic",
            hide_index=True,
            key=f"fork-relabel-{run.id}",
            column_config={
                "sample": st.column_config.NumberColumn(min_value=0, step=1, required=True),
                "class": st.column_config.SelectboxColumn("new class", options=list(number), required=True),
            },
        )
        pairs = {int(row["sample"]): number[row["class"]] for _, row in edited.dropna().iterrows()}
        present = [sample for sample in pairs if sample < len(data.labels)]
        if present:
            st.html(_strip(run, np.array(present), lambda s: f"{data.class_names[data.labels[s]]} → {words[pairs[s]]}"))
    return leave_out, without, pairs


def _without(run: Run, train: np.ndarray) -> tuple[int, ...]:
    """Show the input for training samples to exclude; return their indices in the data set.

    A link from the Failures page prefills the input with the samples that caused a retrieval failure.
    """
    key = f"fork-without-{run.id}"
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get("without", "")[:LONGEST_LIST]
    text = st.text_input(
        "Samples to leave out of training",
        key=key,
        max_chars=LONGEST_LIST,
        placeholder="sample numbers, for example 12, 50, 77",
        help="Numbers in the data set. Failures lists the samples that made a query fail",
    )
    without = fork_spec.parse_samples(text)
    present = [sample for sample in without[:MOST_SHOWN] if sample in train]
    if present:
        st.html(_strip(run, np.array(present), lambda sample: ""))
        if len(without) > MOST_SHOWN:
            st.caption(f"The first {MOST_SHOWN} of {len(without):,}.")
    return without


def _strip(run: Run, samples: np.ndarray, more: Callable[[int], str]) -> str:
    address = thumbnails.address(run)
    cells = "".join(
        f'<figure><img src="{escape(address)}{sample}" alt="sample {sample}" loading="lazy">'
        f"<figcaption>{sample}<br><bdi>{escape(more(int(sample)))}</bdi></figcaption></figure>"
        for sample in samples.tolist()
    )
    return f'{STRIP}<div class="samples">{cells}</div>'


def _show_changes(run: Run, spec: RunSpec) -> None:
    """Show the changes from the parent run."""
    lines = words.changes(run.spec, spec)
    with st.container(border=True):
        if lines:
            st.markdown("**Changes**")
            st.text("\n".join(lines))
        else:
            st.markdown("**No changes**: this fork will repeat its parent bit for bit.")
        st.caption(
            "The fork keeps the network, the optimiser state and the proxies that fit the loss; other parameters of a "
            "new loss are initialised. The run lists them."
        )


def _command(run: Run, spec: RunSpec) -> None:
    """Show the shell command that starts an identical fork."""
    command = ["python", "-m", "dmlcore", "fork", run.id, "--step", str(spec.fork.step)]
    kept = spec.model_copy(update={"fork": run.spec.fork, "name": run.spec.name})
    changes = spec_link.overrides(run.spec, kept)
    if changes is not None:
        for c in sorted(set(spec.fork.leave_out) - set(run.spec.fork.leave_out)):
            command += ["--leave-out", str(c)]
        if samples := sorted(set(spec.fork.leave_out_samples) - set(run.spec.fork.leave_out_samples)):
            command += ["--without", ",".join(map(str, samples))]
        for sample, label in spec.fork.relabel:
            if (sample, label) not in run.spec.fork.relabel:
                command += ["--relabel", f"{sample}={label}"]
        with st.expander("Command line", icon=":material/terminal:"):
            st.code(shlex.join([*command, *changes]), language="bash", wrap_lines=True)


def _start(spec: RunSpec | None) -> None:
    submits = preflight.submits()
    token: str = st.session_state.setdefault("fork-token", secrets.token_hex(16))
    pressed = st.button(
        "Start the fork", key="fork-start", type="primary", icon=":material/fork_right:", disabled=spec is None
    )
    if pressed and spec is not None:
        try:
            submits.launch(token, spec, RunStore())
        except (launch.JobError, DataError, SpecError, OSError) as error:
            refusal(REFUSED, words.plain(error))
            return
        st.session_state["fork-token"] = secrets.token_hex(16)
        st.rerun()


def _refuse(faults: list[str], into: DeltaGenerator) -> None:
    """Show a disabled start button and the errors that prevent a start."""
    with into:
        _start(None)
        refusal(REFUSED, *faults)
