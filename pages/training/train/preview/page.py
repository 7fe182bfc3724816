"""What a training run will do, before it is started: time and memory, data, loss, pooling, the spec in full."""

from __future__ import annotations

import math
from html import escape

import streamlit as st

from dmlcore import data, losses, pooling
from dmlcore.jobs import device_queue
from dmlcore.monitoring import comparability
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from pages.shared.widgets.spec_form import form as spec_form
from pages.shared.widgets.spec_form import preflight
from pages.shared.widgets.spec_form.preflight import Summary
from pages.shared.words import sentences as words
from pages.shared.words.labels import WORDS
from pages.shared.words.numbers import duration

FEW = 20  # training classes below which unseen classes are out of reach
STORY = {
    "own": "It brings its own training, validation and test splits.",
    "samples": "It is tested on new samples of the classes it has learned: the closed set, the easier question.",
    "classes": "It is tested on classes it has never seen: the open set, the honest test of a learned distance.",
}
FEW_CLASSES = (
    "Only {classes} classes to learn from are too few to generalise. Watch what happens: validation on known classes "
    "rises, the test on unseen ones may fall below the untrained network."
)
# Measured with the specs as they are, seeds 0 to 2: python -m benchmarks.specs
DIGITS_STORY = (
    "Measured by benchmarks/specs.py, means of three seeds: MAP@R falls from 49 to 39 % on unseen digits, and rises "
    "from 43 to 93 % on known ones."
)
GLYPHS_STORY = (
    "What to expect, as means of three seeds: MAP@R on alphabets never seen rises from 3 % untrained to 31 %; raw "
    "pixels score 7 %. Five digits to learn from are too few for that: see the example “Digits, unseen classes”."
)


def show(spec: RunSpec, summary: Summary | None, *, ready: bool) -> None:
    """All of it. found: the data set, None where it cannot be read; ready: nothing hinders the training run."""
    if summary and ready:
        _estimate(spec, summary)
    _lint(spec, summary)
    _describe_data(spec, summary)
    if ready:
        _describe_loss(spec)
        if data.describe(spec.data.name).kind != "vectors":
            _describe_pooling(spec)
    _describe_spec(spec)


def _estimate(spec: RunSpec, summary: Summary) -> None:
    """Time and memory before the launch, and what that rests on."""
    estimate = preflight.estimated(spec, summary)
    if estimate is None:
        st.caption("How long it takes is not known for this network.")
        return
    early = " at most" if spec.schedule.patience else ""
    where = "of the GPU" if estimate.gpu else "of the machine"
    queued = len(device_queue.waiting(RunStore()))
    waits = f" {queued} run{'s wait' if queued > 1 else ' waits'} before it." if queued else ""
    with st.container(horizontal=True, key="estimate"):
        st.metric(
            "time", f"≈ {duration(estimate.seconds)}{early}", estimate.basis, delta_color="off", delta_arrow="off"
        )
        st.metric("memory", f"≈ {_bytes(estimate.memory)}", where, delta_color="off", delta_arrow="off")
        flops = f"{estimate.flops / 1e9:,.3g} GFLOP a step"
        st.metric("parameters", _count(estimate.parameters), flops, delta_color="off", delta_arrow="off")
    st.caption(
        "Estimated before anything is trained; up to twice or half of it is usual, less once a run like it is done."
        + waits
    )


def _bytes(number: float) -> str:
    return f"{number / 2**30:.1f} GB" if number >= 2**30 else f"{number / 2**20:.0f} MB"


def _count(number: int) -> str:
    return f"{number / 1e6:.1f} million" if number >= 1e6 else f"{number:,}"


def _lint(spec: RunSpec, summary: Summary | None) -> None:
    """What weakens the result of this run, and in what it leaves the protocol that it names."""
    training = summary and summary.splits["train"][0] + summary.splits["validation"][0]
    warnings = comparability.lint_spec(spec, training or None)
    if spec.schedule.patience == 0 and not spec.protocol:  # known classes are the newcomer's first step, told below
        warnings = [warning for warning in warnings if warning.severity != "note"]
    if warnings:
        with st.expander(f"Worth knowing before you compare: {len(warnings)}", icon=":material/rule:", expanded=True):
            st.text("\n".join(f"• {words.plain(warning.sentence)}" for warning in warnings))


def _describe_data(spec: RunSpec, summary: Summary | None) -> None:
    info = data.describe(spec.data.name)
    st.subheader(info.title, anchor=False)
    st.markdown(f"{info.sentence} {STORY[spec.data.split or info.split]}")
    if summary is None:
        return
    with st.container(horizontal=True, key="splits"):
        for split, (samples, classes) in summary.splits.items():
            if samples:
                shown = f"{classes:,} classes"
                st.metric(f"{split} samples", f"{samples:,}", shown, delta_color="off", delta_arrow="off", border=True)
    learned = summary.splits["train"][1]
    if spec.data.name == "glyphs" and spec.data.split == "classes":
        st.info(GLYPHS_STORY, icon=":material/school:")
    if spec.data.split == "classes" and learned < FEW:
        story = f" {DIGITS_STORY}" if spec.data.name == "digits" else ""
        st.info(FEW_CLASSES.format(classes=learned) + story, icon=":material/school:")
    for note in summary.notes:
        st.caption(note)
    if summary.examples:
        st.html(_strip(summary.examples))
    st.caption(info.citation)


def _strip(examples: tuple[tuple[str, str], ...]) -> str:
    """Images in a row that wraps, the class under each."""
    cells = [
        f'<figure style="margin:0;width:72px;text-align:center"><img src="{address}" alt="{escape(name)}" '
        'style="width:64px;height:64px;object-fit:cover;image-rendering:pixelated;border-radius:4px">'
        f'<figcaption style="font-size:0.75rem;overflow:hidden;text-overflow:ellipsis;white-space:nowrap">'
        f"<bdi>{escape(name)}</bdi></figcaption></figure>"
        for name, address in examples
    ]
    return f'<div style="display:flex;flex-wrap:wrap;gap:6px">{"".join(cells)}</div>'


def _describe_loss(spec: RunSpec) -> None:
    formula = losses.describe(spec.loss.name)
    st.subheader(f"{formula.title} loss", anchor=False)
    st.latex(f"E = {formula.energy_latex}")
    st.markdown(formula.sentence)
    if spec.loss.name not in losses.names():
        st.caption(f"{formula.source}.")
        return
    upper = losses.create(spec.loss.name, **spec.loss.parameters).m2
    window = "from below at 0" if upper == math.inf else f"to 0 … {upper:.4g}; triplets above it move nothing"
    st.caption(
        f"{formula.source}. $a$ is the anchor, $p$ its positive, $n$ its negative; the loss is $E$ clamped {window}."
    )


def _describe_pooling(spec: RunSpec) -> None:
    info = pooling.describe(spec.pooling.name)
    st.subheader(f"{info.title} pooling", anchor=False)
    st.latex(info.latex)
    share = spec.pooling.zero_shot
    mixed = f" The zero-shot prediction loss makes up {share:g} of the whole." if share else ""
    st.caption(f"{info.source}. $f_j$ are the local features, one for each position.{mixed}")


def _describe_spec(spec: RunSpec) -> None:
    batch, schedule = spec.batch, spec.schedule
    size = batch.classes * batch.samples
    triplets = size * (batch.samples - 1) * (size - batch.samples)
    counted = f"{triplets:,} triplets" if spec.loss.name in losses.names() else f"{size:,} samples"
    st.subheader("What will run", anchor=False)
    st.markdown(
        f"{schedule.steps:,} steps of {batch.classes} classes × {batch.samples} samples, that is {counted} "
        f"a step, with {WORDS[spec.optimiser.name]} at {spec.optimiser.learning_rate:g}. "
        f"{_validation(spec)} At the end the test split is scored, beside raw inputs and the untrained network."
    )
    command = spec_form.command(spec)
    st.caption("The same from the command line:" if command else "The same from the command line, with the spec below:")
    st.code(command or "python -m dmlcore train spec.toml", language="bash", wrap_lines=True)
    with st.expander("Spec as TOML", icon=":material/description:"):
        st.code(spec.to_toml(), language="toml")
        st.download_button(
            "Download", spec.to_toml(), "spec.toml", "application/toml", key="download", icon=":material/download:"
        )


def _validation(spec: RunSpec) -> str:
    if spec.data.validation == "none":
        return "Nothing is held out for validation, so the last weights are the ones tested."
    patience = spec.schedule.patience
    early = f" and it stops after {patience} validations without a better one" if patience else ""
    return f"MAP@R is validated every {spec.schedule.validate_every:,} steps; the best weights are kept{early}."
