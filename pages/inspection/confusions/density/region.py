"""The triplet loss whose active region is drawn: that of the run, or another one with its sliders."""

from __future__ import annotations

import streamlit as st

from dmlcore import losses
from dmlcore.inspection.distance_density import loss_of
from dmlcore.losses import TripletLoss
from pages.inspection.confusions.service import View
from pages.shared.widgets.forms import Form
from pages.shared.words.titles import loss_title

OTHERWISE = "ranking"  # where the run has no loss of single triplets


def choose(view: View) -> TripletLoss:
    """A box with the triplet losses, first that of the run, and sliders; what is trained stays as it is."""
    form = Form(f"region-{view.run.id}")
    own = loss_of(view.run.spec)
    name = form.choice(
        "loss",
        "Loss whose region is drawn",
        list(dict.fromkeys([own.formula.name if own else OTHERWISE, *losses.names()])),
        words=lambda name: f"{loss_title(name)}{' (of this run)' if own and name == own.formula.name else ''}",
        help="Where a triplet has a gradient. Move its sliders to see what another margin or clamp would take up",
    )
    if own is None:
        st.caption(
            f"This run was trained with {loss_title(view.run.spec.loss.name)}, which is no loss of single triplets: no "
            "region is its own. Drawn is that of the loss above."
        )
    formula = losses.describe(name)
    given = own.hyper if own and name == own.formula.name else formula.defaults
    found = {
        key: form.parameter(f"{name}.{key}", key, parameter, given[key])
        for key, parameter in formula.parameters.items()
    }
    reduction = own.reduction if own and name == own.formula.name else "mean_valid"
    if reduction == "mean_raw":
        st.caption("It is trained without clamps: every triplet has a gradient.")
    return losses.create(name, reduction=reduction, **found)
