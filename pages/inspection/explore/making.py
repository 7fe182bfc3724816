"""Choice among the maps of a run, the form that computes another map, and the progress of that job."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.inspection import snapshots
from dmlcore.inspection.maps import maps, trajectory
from dmlcore.inspection.maps.maps import Settings
from dmlcore.storage.runs import Run
from pages.shared.widgets import job_button
from pages.shared.widgets.forms import Bounds, number

# URL parameters: name of the map's settings, and "1" for the map over training
PARAMETER, TRAINING = "map", "training"
# in bytes; for smaller embeddings files (about 7,000 samples of 128 dimensions), the map is computed automatically
AT_ONCE = 4 << 20
NEIGHBOURHOODS = (5, 100)
_HELP = {
    "tsne": "Keeps neighbours together; the size, density and distance of groups mean nothing",
    "umap": "Keeps neighbours together in denser groups; distances between groups mean little",
    "pca": "Shows the two directions of largest variance; distances are meaningful, but most neighbours are lost",
}


def choose(run: Run, into: DeltaGenerator) -> Settings | None:
    """Let the user choose a map of the run; ?map= in the URL takes precedence.

    Returns:
        The settings of the chosen map, or None if the run has no map.
    """
    made = maps.list_settings(run)
    if not made:
        return None
    names = {settings.name: settings for settings in made}
    key = f"map of {run.id}"
    wanted = st.query_params.get(PARAMETER)
    st.session_state[key] = wanted if wanted in names else made[0].name  # the URL takes precedence over the select box
    if len(made) > 1:
        into.selectbox(
            "Map",
            list(names),
            key=key,
            format_func=lambda name: names[name].words,
            on_change=_write,
            args=(key,),
            width=330,
        )
    return names[st.session_state[key]]


def over_training(run: Run, settings: Settings, into: DeltaGenerator) -> bool:
    """Show the switch for the map over training if the run has several checkpoints; return True if it is on."""
    if len(snapshots.snapshots(run)) < 2:
        return False
    ready = trajectory.find(run, settings) is not None
    key = f"over training {run.id}"
    st.session_state[key] = ready and st.query_params.get(TRAINING) == "1"
    into.toggle(
        "During training",
        key=key,
        disabled=not ready,
        on_change=_write_training,
        args=(key,),
        help="Shows the same points at every kept checkpoint"
        if ready
        else "Not computed yet; compute it below the map",
    )
    return bool(st.session_state[key])


def missing(run: Run, source: Path) -> None:
    """Handle a run without a map: start the job at once if the embeddings are few, else show the settings form."""
    if source.stat().st_size < AT_ONCE:
        job_button.once(run, "project", Settings(seed=run.spec.seed).to_json())
    st.markdown(
        "These embeddings have no map yet. t-SNE takes seconds for hundreds of samples, minutes for tens of thousands."
    )
    if not progress(run):
        form(run)


def progress(run: Run) -> bool:
    """Return True, and show the progress, while a job on this run is active; otherwise show its error, if any."""
    if job_button.busy(run, "map"):
        return True
    job_button.failed(run, "project", "project-over-training")
    return False


def form(run: Run) -> None:
    """Show the form that sets the parameters of another map and starts its computation."""
    method = st.segmented_control(
        "Method",
        maps.METHODS,
        default="tsne",
        required=True,
        format_func=maps.TITLES.__getitem__,
        key="map method",
    )
    st.caption(f"{_HELP[method]}.")
    with st.form("map settings", border=False):
        defaults = Settings(method=method, seed=run.spec.seed)
        values, fault = asdict(defaults), ""
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if method == "tsne":
                values["perplexity"] = st.slider(
                    "Perplexity",
                    *NEIGHBOURHOODS,
                    int(defaults.perplexity),
                    width=220,
                    help="Approximate number of neighbours that each point keeps close",
                )
            if method == "umap":
                values["neighbours"] = st.slider(
                    "Neighbours",
                    *NEIGHBOURHOODS,
                    defaults.neighbours,
                    width=220,
                    help="Number of neighbours that each point is linked to",
                )
                values["min_dist"] = st.slider(
                    "Minimum distance",
                    0.0,
                    1.0,
                    defaults.min_dist,
                    width=180,
                    help="Minimum distance between points on the map",
                )
            if method != "pca":
                values["iterations"] = st.slider("Iterations", 100, 2000, defaults.iterations, step=50, width=220)
                values["seed"], fault = number(
                    "Seed", f"map-seed-{run.id}", Bounds(0, 2**32 - 1), start=run.spec.seed, whole=True, width=130
                )
            if (
                st.form_submit_button("Compute", type="primary", icon=":material/play_arrow:", key="project")
                and not fault
            ):
                _begin(run, Settings(**values))
                st.rerun()


def offer_training(run: Run, settings: Settings) -> None:
    """Show a button that computes the map over training, or explain which checkpoints it needs."""
    known = snapshots.snapshots(run)
    if len(known) < 2:
        st.caption(
            "This run kept no intermediate checkpoints. To see the map change during training, start a run with “Keep "
            "a checkpoint every”."
        )
        return
    if trajectory.find(run, settings) is not None:
        st.caption(f"Computed for {len(known)} checkpoints. Switch on “During training” above.")
        return
    st.markdown(f"This run has {len(known)} checkpoints. Settings: {settings.words}.")
    if st.button("Compute the map during training", icon=":material/animation:", key="project-over-training"):
        _begin(run, settings, training=True)
        st.rerun()


def _begin(run: Run, settings: Settings, *, training: bool = False) -> None:
    job_button.begin(run, "project-over-training" if training else "project", settings.to_json())
    st.query_params[PARAMETER] = settings.name  # select the map that is being computed
    if training:
        st.query_params[TRAINING] = "1"


def _write(key: str) -> None:
    st.query_params[PARAMETER] = st.session_state[key]


def _write_training(key: str) -> None:
    if st.session_state[key]:
        st.query_params[TRAINING] = "1"
    else:
        st.query_params.pop(TRAINING, None)
