"""Weight maps of several poolings over test images, and the nearest neighbours of a chosen image in each run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from dmlcore import data
from dmlcore.data import DataError
from dmlcore.data.identities import identities
from dmlcore.experiments import studies
from dmlcore.experiments.studies import StudyRequest, StudyResults
from dmlcore.inspection.images import data_uri, fit_into
from dmlcore.inspection.local import weight_maps
from dmlcore.inspection.local.weight_maps import WeightMaps
from dmlcore.pooling import describe
from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.sections import WITHOUT_BACKBONE
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run, RunError, RunStore
from pages.pooling.collage import canvas as canvas_view
from pages.pooling.collage.state import STUDIES, onward
from pages.shared.server import thumbnails
from pages.shared.state import run_reader
from pages.shared.widgets import job_button, menu, neighbour_grid, run_picker, run_status
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.widgets.study.scores import HERE, SHIPPED, requested
from pages.shared.widgets.test_neighbours import learned, naming
from pages.shared.words import sentences as words
from pages.shared.words import titles
from pages.shared.words.numbers import percent

MOST, FIRST = 5, 3  # maximum number of runs shown together; number of runs shown by default
NEIGHBOURS = 8
CLICK = "collage_click"


def show(name: str) -> None:
    """Show the weight maps of a study, either shipped ones or those of chosen runs with the neighbours of an image."""
    asked, mine = st.query_params.get("runs", "")[:1000], _of_study(name)
    named = [*asked.split(","), *(run.id for run in mine)]
    image_runs = run_picker.offered(RunStore(), lambda name, brief: brief.model not in WITHOUT_BACKBONE, named)
    runs = [run for run in image_runs.values() if run.embeddings() is not None]
    shipped = _shipped(name)
    source = HERE if runs else SHIPPED
    figure = st.container()  # filled last, because its content depends on the widget below it
    if runs and shipped:
        first = HERE if asked or mine else SHIPPED
        source = st.segmented_control("Maps", [HERE, SHIPPED], default=first, key="collage_source") or first
    with figure:
        _draw(name, runs, shipped if source == SHIPPED else None)


def _draw(name: str, runs: Sequence[Run], shipped: StudyResults | None) -> None:
    if shipped:
        _show_shipped(name, shipped)
        return
    if not runs:
        st.markdown(
            "Weight maps appear here after the first finished run on images: run the study below, or start your own "
            "in New run with a pooling that weights positions."
        )
        menu.link("settings", "Train a network on images")
        return
    chosen = _choose(name, runs)
    if chosen:
        _section(name, [run.id for run in chosen])


def _shipped(name: str) -> StudyResults | None:
    """Return the shipped results of a study, or None if they are missing or contain no weight maps."""
    try:
        results = studies.load(name)
    except SpecError:  # the study panel below reports this error
        return None
    return results if results and results.maps else None


@st.fragment
def _show_shipped(name: str, results: StudyResults) -> None:
    """Show the shipped weight maps, drawn over the images if the data set is available."""
    shipped = results.maps
    assert shipped is not None
    tile, indices = np.array(shipped.tile), np.array(shipped.indices)
    spec = StudyRequest(study=name, overrides=results.overrides, seeds=(shipped.seed,)).entries()[0].spec
    side = data.describe(spec.data.name).grid
    shows = tile[:, None] == np.arange(side**2)
    lines = []
    for run in results.runs:
        if run.seed == shipped.seed and run.variant in shipped.weights:
            weights = shipped.of(run.variant)
            maps = WeightMaps(indices, weights, weight_maps.foreground_share(weights, shows), tile)
            share = run.scores.get("foreground")
            lines.append(canvas_view.WeightsRow(run.variant, _scores(run.scores["map_at_r"], share), maps))
    names = dict(zip(shipped.indices, (name.replace("_", " ") for name in shipped.names), strict=True))
    content = dict(zip(shipped.indices, shipped.content, strict=True))
    canvas_view.show(
        lines,
        side,
        names.__getitem__,
        lambda index: _image(spec, index, content[index]),
        onward=onward(name, st.query_params.to_dict()),
    )
    if name == STUDIES["omniglot"] and not _image(spec, shipped.indices[0], shipped.content[0]):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                "The images are missing: they are made from Omniglot's minimal sets, which are not on this machine."
            )
            menu.link("data", "Add the data set", {"data": spec.data.name}, icon="database")
    st.caption(f"Shipped weights of seed {shipped.seed} on {len(indices)} test images.")


def _image(spec: RunSpec, index: int, content: str) -> str:
    """Return the data URL of a sample's image; "" if the data set has no sample with this index and content hash."""
    try:
        if data.available(spec.data.name, spec.data.root) is None:
            return ""
        if identities(thumbnails.dataset(spec), np.array([index])).tobytes().hex() != content:
            # The installed release of the data set differs from the one with which the results were computed.
            return ""
        image = thumbnails.dataset(spec).image
        return data_uri(fit_into(image(index), thumbnails.SIDE)) if image else ""
    except (DataError, IndexError):
        return ""


@st.fragment
def _section(study_name: str, ids: Sequence[str]) -> None:
    store = RunStore()
    try:
        runs = [store.open(run_id) for run_id in ids]
        maps_by_run = {run.id: maps for run in runs if (maps := _maps(run)) is not None}
    except RunError as error:
        st.error("A run cannot be shown.", icon=":material/broken_image:")
        st.text(words.plain(error))
        return
    weighed = [run for run in runs if run.id in maps_by_run and maps_by_run[run.id].weights.size]
    for run in runs:
        if run.id in maps_by_run and not maps_by_run[run.id].weights.size:
            st.caption(
                f"{describe(run.spec.pooling.name).title} has no weight map: its output is not a weighted sum over "
                "positions."
            )
    if weighed:
        lines = [
            canvas_view.WeightsRow(
                _label(run), _words(run, maps_by_run[run.id]), maps_by_run[run.id], thumbnails.address(run)
            )
            for run in weighed
        ]
        name, labels = _naming(weighed[0]), thumbnails.dataset(weighed[0].spec).labels
        side = data.describe(weighed[0].spec.data.name).grid
        chosen = canvas_view.show(
            lines, side, lambda index: name(int(labels[index])), onward=onward(study_name, st.query_params.to_dict())
        )
        _neighbours(runs, chosen)


def _choose(name: str, runs: Sequence[Run]) -> list[Run]:
    """Let the user choose runs on the same images; by default those in ?runs= of the URL, else those of the study."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(thumbnails.samples_key(run.spec), []).append(run)
    named = st.query_params.get("runs", "")[:1000].split(",")
    wanted = [run for name in dict.fromkeys(named) for run in runs if run.id == name]
    mine = _of_study(name)
    default = wanted or mine or runs[:1]
    labels = {
        key: f"{titles.data_title(group[0].spec.data.name)}, seed {group[0].spec.seed}" for key, group in groups.items()
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        keys = list(groups)
        key = keys[0]
        if len(keys) > 1:
            first = thumbnails.samples_key(default[0].spec)
            key = st.selectbox(
                "Images",
                keys,
                index=keys.index(first),
                format_func=lambda k: labels[k],
                key="collage_data",
                width=300,
            )
        group = {run.id: run for run in groups[key]}
        start = [run.id for run in default if run.id in group][:MOST] or list(group)[:1]
        picked = st.multiselect(
            "Runs, one row each",
            list(group),
            default=start,
            max_selections=MOST,
            format_func=lambda run_id: _label(group[run_id]),
            key=f"collage_runs_{hashlib.sha256(key.encode()).hexdigest()[:8]}",
        )
    if not picked:
        st.info("Choose a run.", icon=":material/info:")
        return []
    # the default choice is not written to the URL
    address = "" if picked == [run.id for run in mine] else ",".join(picked)
    if address != st.query_params.get("runs", ""):
        st.query_params.from_dict(
            {k: v for k, v in st.query_params.to_dict().items() if k != "runs"} | ({"runs": address} if address else {})
        )
    return [group[run_id] for run_id in picked]


def _of_study(name: str) -> list[Run]:
    """Return up to FIRST finished runs from the study on collages, all with the first seed of the study."""
    store = RunStore()
    entries = requested(name, store).entries()
    pairs = zip(entries, studies.find(entries, store), strict=True)
    done = [(e.seed, run) for e, run in pairs if data.describe(e.spec.data.name).grid and run and run.embeddings()]
    return [run for seed, run in done if seed == done[0][0]][:FIRST]


def _maps(run: Run) -> WeightMaps | None:
    """Return the weight maps of a run, or None after starting the job that computes them."""
    path = weight_maps.path_of(run)
    if path is None:
        run_status.literal(_label(run), "b")
        job_button.offer(run, "weigh", at_once=True)
        return None
    return _read(path, path.stat().st_mtime_ns)


@st.cache_resource(max_entries=12, show_spinner=False)
def _read(path: Path, changed: int) -> WeightMaps:
    return weight_maps.read(path)


def _words(run: Run, maps: WeightMaps) -> str:
    score = run_reader.reader().history(run).scores.get("trained", {}).get("map_at_r")
    share = float(maps.foreground.mean())
    flat = bool(np.ptp(maps.weights, axis=(1, 2)).max() == 0) and run.spec.pooling.name.startswith("gsp")
    early = " · best checkpoint precedes the prototypes, so it still averages" if flat else ""
    return _scores(score, None if np.isnan(share) else share) + early


def _scores(score: float | None, share: float | None) -> str:
    """Return the caption of a row; `share` is the mean test weight on the tile of the class, None if unknown."""
    mean = "" if share is None else f" · {percent(share)} of the weight on the tile (test mean)"
    return f"test MAP@R {percent(score)}{mean}"


def _neighbours(runs: Sequence[Run], chosen: int) -> None:
    """Show the nearest neighbours of the chosen image (a data set index) in each run."""
    st.subheader("Nearest neighbours in each run", anchor=False)
    st.markdown(
        "The chosen image is the query. :green[**✓**] marks neighbours of its class, :orange[**✗**] neighbours of "
        "other classes. Click a neighbour to make it the query."
    )
    neighbour_grid.clicked(CLICK, _follow_click)
    name = _naming(runs[0])
    for run in runs:
        source = run.embeddings()
        try:
            searched = learned(source) if source else None
        except Unreadable as error:
            st.text(words.plain(error))
            continue
        row = searched.row(str(chosen)) if searched else None
        if source is None or searched is None or row is None:
            continue
        shown = ShownRun(run, source, searched, name)
        near = shown.near(row, NEIGHBOURS, forces=False)
        run_status.literal(f"{_label(run)}: {sum(bool(tile.right) for tile in near)} of {NEIGHBOURS} right", "b")
        tiles = [(shown.tile(row, f"AP@R {percent(searched.average_precision[row])}"), near)]
        st.html(neighbour_grid.html(tiles, thumbnails.address(run), lambda index: f"?{urlencode({'query': index})}"))


def _label(run: Run) -> str:
    title = describe(run.spec.pooling.name).title
    zero_shot = " + zero-shot" if run.spec.pooling.zero_shot else ""
    return f"{title}{zero_shot} · {run.id[-4:]}"


def _naming(run: Run) -> Callable[[int], str]:
    """Return a function that maps a label to its class name, with underscores replaced by spaces."""
    name = naming(run)
    return lambda label: name(label).replace("_", " ")


def _follow_click() -> None:
    canvas_view.ask(st.session_state[CLICK]["query"])
