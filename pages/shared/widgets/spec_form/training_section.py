"""Training section of the form: batches, optimiser, schedule, device."""

from __future__ import annotations

import streamlit as st

from dmlcore.experiments import protocols
from dmlcore.spec.optimisers import OPTIMISERS
from dmlcore.training.build import has_cuda
from pages.shared.widgets.forms import Form
from pages.shared.widgets.spec_form.fields import choice, field, row
from pages.shared.widgets.spec_form.values import chooses


def training(form: Form) -> None:
    """Show the settings of batch, steps and optimiser; rarely changed settings are in expanders."""
    st.subheader("Training", anchor=False)
    left, right = st.columns(2)
    with left:
        field(form, "batch.classes")
        field(form, "schedule.steps", step=50)
        field(form, "optimiser.name")
    with right:
        field(form, "batch.samples")
        field(form, "schedule.validate_every", step=10)
        field(form, "optimiser.learning_rate")
    with st.expander("Batches"):
        _batches(form)
    with st.expander("Optimiser details"):
        _optimiser(form)
    with st.expander("Schedule details"):
        _schedule(form)
    with st.expander("Compute, name and seed"):
        _compute(form)


def _batches(form: Form) -> None:
    sampler = field(form, "batch.sampler")
    if sampler in ("mined", "neighbourhood"):
        field(form, "batch.balanced_steps", step=50)
        field(form, "batch.refresh", step=50)
    if sampler == "neighbourhood":
        field(form, "batch.neighbours")


def _optimiser(form: Form) -> None:
    left, right = st.columns(2)
    with left:
        decays = field(form, "optimiser.weight_decay")
        field(form, "optimiser.head_factor", step=1.0)
        field(form, "optimiser.clip_norm", step=0.1)
        if form.values["model.name"] != "tokens":
            field(form, "model.dropout", step=0.1)
    with right:
        for key, setting in OPTIMISERS[form.values["optimiser.name"]].settings.items():
            field(form, f"optimiser.{key}", step=setting.step)
        field(form, "schedule.warm_up", step=10)
        field(form, "optimiser.clip_value", step=0.1)
        if form.values["model.name"] != "tokens":
            if field(form, "model.embedding_start") == "whitening":
                field(form, "model.shrinkage", step=1.0)
            field(form, "model.embedding_scale", step=0.01)
    if decays:
        field(form, "optimiser.decay_batch_norm")


def _schedule(form: Form) -> None:
    decay = field(form, "schedule.decay")
    left, right = st.columns(2)
    if decay == "step":
        with left:
            field(form, "schedule.decay_every", step=50)
        with right:
            field(form, "schedule.decay_factor", step=0.1)
    field(form, "schedule.monitor_part")
    if chooses(form.values):
        field(form, "schedule.monitor")
        left, right = st.columns(2)
        with left:
            field(form, "schedule.patience")
            plateau = field(form, "schedule.plateau")
        if plateau:
            with right:
                field(form, "schedule.plateau_factor", step=0.1)
    row(form, "schedule.checkpoint_every", "schedule.measure_every", step=10)
    field(form, "schedule.keep_every", step=10)
    field(form, "schedule.covering_every", step=10)
    if chooses(form.values):
        field(form, "schedule.cluster")


def _compute(form: Form) -> None:
    field(form, "name")
    row(form, "seed", "ks")
    device = {"auto": f"auto: {'CUDA' if has_cuda() else 'CPU'} on this machine"}
    field(form, "device", words=device)
    field(form, "compute.precision")
    field(form, "compute.compile")
    field(form, "compute.graphs")
    field(form, "compute.workers")
    options = ["", *protocols.names()]
    choice(form, "protocol", options, lambda name: protocols.read(name).title if name else "none")
