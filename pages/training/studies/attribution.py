"""Table of the settings that a study's source leaves open, and how much each of them changes a contrast."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dmlcore.experiments import attribution, studies
from dmlcore.experiments.attribution import ScoredRun
from dmlcore.experiments.studies import Study
from dmlcore.spec import SpecError
from dmlcore.storage.runs import RunStore
from pages.shared.state.cache import derived
from pages.shared.widgets.drawn import drawn
from pages.shared.words import sentences as words


def show(name: str) -> None:
    """Show the attribution of a study, measured here or shipped; nothing if the study lists no open settings."""
    study = studies.read(name)
    if study.attribution is None:
        return
    st.subheader("Settings that the source leaves open", anchor=False)
    try:
        here = attribution.measured(studies.StudyRequest(study=name), RunStore())
        shipped = attribution.load(name)
    except SpecError as error:
        st.error("The results of the attribution cannot be read.")
        st.text(words.plain(error))
        return
    complete = bool(derived(attribution.shares, study, here))
    runs = here if complete or not shipped else shipped.runs
    rows = derived(attribution.rows, study, runs)
    if not rows:
        settings = ", ".join(setting.name for setting in study.attribution.open)
        st.markdown(f"Not measured yet: {settings}. About {study.attribution.minutes:g} minutes on one core:")
        st.code(f"python -m dmlcore attribute {name}", language="bash")
        return
    drawn(_draw, name, study, runs)


def _draw(name: str, study: Study, runs: Sequence[ScoredRun]) -> None:
    st.markdown(attribution.summary(study, runs))
    contrast = attribution.contrast_of(study)
    text = st.column_config.TextColumn
    config = {
        "alternative": text(help="Changed alone; all other settings are those of the study"),
        "contrast": text(help=f"With the alternative. {contrast.where}: difference in {contrast.title}, in points"),
        "change": text(help="Change of the contrast by the alternative, in points, paired over the seeds"),
        "95 % interval": text(help="Of the mean change, in points"),
        "significant": text(help="Corrected for the number of alternatives"),
        "share of the variance": text(
            help="Of the contrast, in a two-level design of all settings' first alternatives"
        ),
    }
    rows = attribution.rows(study, runs)
    st.dataframe(rows, height="content", hide_index=True, key=f"open-{name}", placeholder="", column_config=config)
    st.caption("Points, mean ± deviation over the seeds. Hover over a heading for its definition.")
