"""Start page, the last step of a new run: its summary, its cost on this machine, and the start button."""

from __future__ import annotations

import streamlit as st

from dmlcore import data, losses
from dmlcore.jobs import device_queue
from dmlcore.spec import RunSpec
from dmlcore.storage.metrics_rows import representation
from dmlcore.storage.runs import RunStore
from pages.shared.state import spec_link
from pages.shared.widgets import machines, menu
from pages.shared.widgets.error_boundary import refusal
from pages.shared.widgets.spec_form import preflight
from pages.shared.widgets.spec_form.preflight import Summary
from pages.shared.words.labels import WORDS
from pages.shared.words.numbers import duration
from pages.training.new_run import launch_panel
from pages.training.new_run.settings import steps

# Measured with the shipped specs and seeds 0 to 2: python -m benchmarks.specs
DIGITS_STORY = (
    "What to expect (mean of three seeds): MAP@R falls from 49 to 39 % on unseen digits, and rises from 43 to 93 % on "
    "known ones."
)
GLYPHS_STORY = (
    "What to expect (mean of three seeds): MAP@R on unseen alphabets rises from 3 % untrained to 31 %; raw pixels "
    "score 7 %. The example “Digits, unseen classes” has only five training classes, which is too few to generalise."
)
TESTED = {
    "own": "the test split of the data set",
    "samples": "new samples of the training classes",
    "classes": "unseen classes",
}


def main() -> None:
    head = steps.StepHead("start", "Start", "Check what will happen and what it costs, then start.")
    form = steps.form()
    steps.begin(form, "start", "start")
    spec, faults = steps.spec_of(form)
    head.row({"data": form.values["data.name"]} | steps.carried(form, spec))
    if spec is None:
        button(head, None, faults, 1)
        refusal(steps.REFUSED, *faults)
        menu.link("settings", "Correct the settings in step 2")
        return
    summary, obstacles = steps.examine(spec)
    refusal(steps.REFUSED, *obstacles)
    above = st.container()
    processes = machines.processes(spec)
    button(head, spec, obstacles, processes)
    with above:
        _outlook(spec, summary, processes, ready=not obstacles)


def _outlook(spec: RunSpec, summary: Summary | None, processes: int, *, ready: bool) -> None:
    """Show the estimated cost and the stages of the run, and the command that starts an identical run."""
    if summary is None:
        menu.link("data", "Fetch the data in step 1", {"data": spec.data.name})
        return
    if same := preflight.trained_already(spec):
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown("**You have this already**: a finished run has exactly these settings.", width="content")
            menu.link("runs", "Open it", {"run": same.id})
            menu.link("explore", "Explore what it learned", {"run": same.id})
    if ready:
        _estimate(spec, summary, processes)
    _what_happens(spec, summary)
    _what_to_expect(spec)
    command = spec_link.command(spec)
    if command:
        st.caption("Command line:")
        st.code(machines.on_command_line(command, processes), language=None, wrap_lines=True)


def button(head: steps.StepHead, spec: RunSpec | None, obstacles: list[str], processes: int) -> None:
    """Show the start button in the sidebar and, on a phone, next to the title; when one is pressed, start the run."""
    pressed = launch_panel.show(spec, obstacles, key="start")
    with head.onward:
        pressed |= st.button(
            "Start training",
            key="start-here",
            type="primary",
            icon=":material/play_arrow:",
            disabled=spec is None or bool(obstacles),
        )
    steps.start(spec, processes, pressed=pressed)


MUCH = 0.3  # share of validation in the run time above which the page recommends fewer validations


def _estimate(spec: RunSpec, summary: Summary, processes: int) -> None:
    """Show the estimated time and memory, and the basis of the estimate."""
    estimate = preflight.estimated(spec, summary)
    if estimate is None:
        st.caption("Time and memory of this network are not known in advance.")
        return
    early = " at most" if spec.schedule.patience else ""
    where = "of the GPU" if estimate.gpu else "of the machine"
    elsewhere = machines.chosen()
    queued = 0 if elsewhere else len(device_queue.waiting_runs(RunStore()))
    waits = f" Ahead in the queue: {queued} run{'s' if queued > 1 else ''}." if queued else ""
    every = spec.schedule.validate_every
    much = (
        f" Validation every {every} steps takes {estimate.validation_share:.0%} of the time; validate less often."
        if estimate.validation_share > MUCH
        else ""
    )
    time, basis = "not known yet", "shown after the first steps"
    if estimate.seconds is not None:
        time = f"≈ {duration(estimate.seconds)}{early}"
        basis = f"from {estimate.runs} finished run{'s' if estimate.runs > 1 else ''} like it"
    with st.container(horizontal=True, key="estimate"):
        st.metric("time", time, basis, delta_color="off", delta_arrow="off")
        st.metric("memory", f"≈ {_bytes(estimate.memory)}", where, delta_color="off", delta_arrow="off")
        frozen = f"{_count(estimate.frozen_parameters)} frozen" if estimate.frozen_parameters else "none frozen"
        st.metric("trainable parameters", _count(estimate.parameters), frozen, delta_color="off", delta_arrow="off")
    if much or waits:
        st.caption(f"{much}{waits}".strip())
    if elsewhere:
        st.caption(
            f"**Runs on {machines.chosen_title()}.** The estimate is for this machine: nodes may be faster or slower, "
            "and the time in their queue is unknown."
        )
    if processes > 1:
        st.caption(
            f"**Trained by {processes} processes.** The time estimate is for one process; more processes on the cores "
            f"of one machine save little. Memory: up to {processes} times as much."
        )


def _bytes(number: float) -> str:
    return f"{number / 2**30:.1f} GB" if number >= 2**30 else f"{number / 2**20:.0f} MB"


def _count(number: int) -> str:
    return f"{number / 1e6:.1f} million" if number >= 1e6 else f"{number:,}"


def _what_happens(spec: RunSpec, summary: Summary) -> None:
    info, batch, schedule = data.describe(spec.data.name), spec.batch, spec.schedule
    st.subheader("What will happen", anchor=False)
    with st.container(horizontal=True, key="splits"):
        for split, (samples, classes) in summary.splits.items():
            if samples:
                shown = f"{classes:,} classes"
                st.metric(f"{split} samples", f"{samples:,}", shown, delta_color="off", delta_arrow="off", border=True)
    size = batch.classes * batch.samples
    triplets = size * (batch.samples - 1) * (size - batch.samples)
    counted = f"{triplets:,} triplets" if spec.loss.name in losses.names() else f"{size:,} samples"
    st.markdown(
        f"1. The network trains on **{info.title}** with the {losses.describe(spec.loss.name).title} loss for "
        f"{schedule.steps:,} steps. A batch has {batch.classes} classes × {batch.samples} samples ({counted}); it uses "
        f"{WORDS[spec.optimiser.name]} at learning rate {spec.optimiser.learning_rate:g}.\n"
        f"2. {_validation(spec)}\n"
        f"3. At the end it is tested on **{TESTED[spec.data.split or info.split]}**, compared with raw inputs and the "
        f"{representation('untrained', pretrained=bool(spec.model.start))}.\n"
        "4. It runs in the background; you can close this page. **Runs** shows its progress and leads to what it "
        "learned."
    )


def _validation(spec: RunSpec) -> str:
    if spec.data.validation == "none":
        return "No validation split: the last weights are tested."
    patience = spec.schedule.patience
    early = f", and training stops after {patience} validations without improvement" if patience else ""
    return f"MAP@R is validated every {spec.schedule.validate_every:,} steps; the best checkpoint is kept{early}."


def _what_to_expect(spec: RunSpec) -> None:
    """Show results measured in advance for this data set with unseen classes, if there are any."""
    stories = {"glyphs": GLYPHS_STORY, "digits": DIGITS_STORY}
    if spec.data.split == "classes" and (story := stories.get(spec.data.name)):
        st.info(story, icon=":material/school:")


main()
