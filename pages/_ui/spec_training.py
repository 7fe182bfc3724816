"""The part of the form on how a training goes: batches, optimiser, schedule, device."""

from __future__ import annotations

import streamlit as st

from dmlcore import protocols
from dmlcore.spec import keys
from pages._ui.forms import Form
from pages._ui.spec_fields import WORDS, cuda, field
from pages._ui.spec_values import chooses


def training(form: Form) -> None:
    """Batch, steps and optimiser in sight; what most leave as it is, folded."""
    st.subheader("Training", anchor=False)
    left, right = st.columns(2)
    with left:
        field(form, "batch.classes", "Batch classes")
        field(form, "schedule.steps", "Steps", step=50)
        field(form, "optimiser.name", "Optimiser")
    with right:
        field(form, "batch.samples", "Samples each")
        field(form, "schedule.validate_every", "Validate every", step=10)
        field(form, "optimiser.learning_rate", "Learning rate")
    with st.expander("Batches"):
        _batches(form)
    with st.expander("Optimiser details"):
        _optimiser(form)
    with st.expander("Schedule details"):
        _schedule(form)
    with st.expander("Compute, name and seed"):
        _compute(form)


def _batches(form: Form) -> None:
    sampler = field(form, "batch.sampler", "Batches are")
    if sampler in ("mined", "neighbourhood"):
        field(form, "batch.refresh", "Embed anew every", step=50)
    if sampler == "neighbourhood":
        field(form, "batch.neighbours", "Neighbours")


def _optimiser(form: Form) -> None:
    left, right = st.columns(2)
    with left:
        decays = field(form, "optimiser.weight_decay", "Weight decay")
        field(form, "optimiser.head_factor", "Head × rate", step=1.0)
        field(form, "optimiser.clip_norm", "Clip norm", step=0.1)
    with right:
        if form.values["optimiser.name"] == "sgd":
            field(form, "optimiser.momentum", "Momentum", step=0.05)
        else:
            field(form, "optimiser.epsilon", "Epsilon", step=1e-8)
        field(form, "schedule.warm_up", "Warm-up", step=10)
        field(form, "optimiser.clip_value", "Clip value", step=0.1)
    if decays:
        field(form, "optimiser.decay_batch_norm", "Decay batch norm and biases too")


def _schedule(form: Form) -> None:
    decay = field(form, "schedule.decay", "Learning rate", words=WORDS | {"none": "constant"})
    left, right = st.columns(2)
    if decay == "step":
        with left:
            field(form, "schedule.decay_every", "Lowered every", step=50)
        with right:
            field(form, "schedule.decay_factor", "By factor", step=0.1)
    field(form, "schedule.monitor_part", "Weights are chosen on")
    if chooses(form.values):
        field(form, "schedule.monitor", "By")
        left, right = st.columns(2)
        with left:
            field(form, "schedule.patience", "Patience")
            plateau = field(form, "schedule.plateau", "Plateau")
        if plateau:
            with right:
                field(form, "schedule.plateau_factor", "Plateau factor", step=0.1)
    left, right = st.columns(2)
    with left:
        field(form, "schedule.checkpoint_every", "Checkpoint every", step=10)
    with right:
        field(form, "schedule.measure_every", "Measure every", step=10)
    field(form, "schedule.keep_every", "Keep a checkpoint every", step=10)


def _compute(form: Form) -> None:
    field(form, "name", "Name")
    left, right = st.columns(2)
    with left:
        field(form, "seed", "Seed")
    with right:
        field(form, "ks", "K of R@K")
    device = {"auto": f"auto: {'CUDA' if cuda() else 'CPU'} on this machine"}
    field(form, "device", "Device", words=WORDS | device)
    field(form, "compute.precision", "Arithmetic")
    field(form, "compute.compile", "Compile the network")
    form.choice(
        "protocol",
        "Follows the protocol",
        ["", *protocols.names()],
        words=lambda name: protocols.read(name).title if name else "none",
        help=keys()["protocol"].description,
    )
