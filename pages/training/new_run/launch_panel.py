"""Start button at the foot of the sidebar of a new run, with a summary of the run and the obstacles to its start."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dmlcore import losses
from dmlcore.spec import RunSpec
from pages.shared.widgets import run_status
from pages.shared.words.labels import WORDS
from pages.shared.words.titles import data_choice

MOST = 3  # maximum number of obstacles in the sidebar; the page lists all
# The panel stays visible while the form above it scrolls. On a phone the sidebar is a closed drawer, so the Start page
# has a second button there.
STYLE = """<style>
[data-testid="stLayoutWrapper"]:has(> .st-key-launch) { position: sticky; bottom: 0; z-index: 5;
  margin-bottom: -1rem; padding-block: .75rem 1rem; border-top: 1px solid rgb(128 128 128 / 30%); background: %s; }
.st-key-launch { max-height: 40vh; overflow-y: auto; flex-wrap: nowrap; }
[data-testid="stSidebarContent"]:has(.st-key-launch) { scroll-padding-bottom: 6rem; }
.st-key-launch small { display: block; line-height: 1.45; overflow-wrap: anywhere; }
@media (min-width: 769px) { .st-key-start-here { display: none; } }
</style>"""


def show(spec: RunSpec | None, obstacles: Sequence[str], *, key: str, summarised: bool = True) -> bool:
    """Show the panel in the sidebar; return True if its button was pressed.

    Args:
        spec: Spec of the run; None if the settings are not valid.
        obstacles: Sentences that say why the run cannot start; the button is enabled if there are none.
        key: Key of the button, different on each page.
        summarised: True to list data, loss, network and steps above the button.
    """
    background = st.get_option(f"theme.{st.context.theme.type or 'light'}.secondaryBackgroundColor")
    st.html(STYLE.replace("%s", str(background)))
    with st.sidebar:
        if summarised and spec:
            st.subheader("Your run", anchor=False)
            st.markdown(_summary(spec))
        with st.container(key="launch", gap="xsmall"):
            pressed = st.button(
                "Start training",
                key=key,
                type="primary",
                icon=":material/play_arrow:",
                disabled=spec is None or bool(obstacles),
                width="stretch",
            )
            if obstacles:
                st.caption(":orange[:material/error:] Cannot start yet:")
            for sentence in obstacles[:MOST]:
                run_status.literal(sentence, "small")
            if len(obstacles) > MOST:
                st.caption(f"{len(obstacles) - MOST} more on the page.")
    return pressed


def _summary(spec: RunSpec) -> str:
    """Return lines of Markdown with data set, loss, network and steps of a spec."""
    split = f", {WORDS[spec.data.split]}" if spec.data.split else ""
    rows = {
        "Data": f"{data_choice(spec.data.name)}{split}",
        "Loss": losses.describe(spec.loss.name).title,
        "Network": f"{WORDS.get(spec.model.name, spec.model.name)}, {spec.model.embedding_dim}\u2011D",
        "Steps": f"{spec.schedule.steps:,} of {spec.batch.classes} × {spec.batch.samples} samples",
    }
    return "  \n".join(f"**{name}**: {text}" for name, text in rows.items())
