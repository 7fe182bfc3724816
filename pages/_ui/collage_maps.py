"""Where poolings look: test pictures with the weight map of each run over them, and what each run takes for similar."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from dmlcore import studies, weight_maps
from dmlcore.arrays import Unreadable
from dmlcore.pooling import describe
from dmlcore.runs import Run, RunError, RunStore
from dmlcore.spec import RunSpec
from dmlcore.weight_maps import WeightMaps
from pages._ui import grid, job, live, run_picker, thumbnails, untrusted, words
from pages._ui.assets import component
from pages._ui.learned import learned, naming
from pages._ui.live import percent
from pages._ui.study_panel import requested

STUDY = "collage"
MOST, FIRST = 5, 3  # runs shown together, and at first
PICTURES, NEIGHBOURS = 8, 8
OPACITY = 0.6
LAST = 9999  # of the numbered draws of pictures
KEY, CLICK = "collage", "collage_click"

_canvas = component("collage")


def show() -> None:
    """The section: choice of runs, pictures with their weights, neighbours of the chosen one."""
    named = [*st.query_params.get("runs", "")[:1000].split(","), *(run.id for run in _of_study())]
    pictured = run_picker.offered(RunStore(), lambda name, brief: brief.model not in ("mlp", "tokens"), named)
    runs = [run for run in pictured.values() if run.embeddings() is not None]
    st.subheader("Where a pooling looks", anchor=False)
    if not runs:
        st.markdown(
            "Weight maps appear here with the first finished run on pictures: one of the study above, or any other "
            "trained on the Train page with a pooling that weighs positions."
        )
        st.page_link("train.py", label="Train a network on pictures", icon=":material/play_circle:")
        return
    chosen = _choose(runs)
    if chosen:
        _section([run.id for run in chosen])


@st.fragment
def _section(ids: Sequence[str]) -> None:
    store = RunStore()
    try:
        runs = [store.open(run_id) for run_id in ids]
        found = {run.id: maps for run in runs if (maps := _maps(run)) is not None}
    except RunError as error:
        st.error("A run cannot be shown.", icon=":material/broken_image:")
        st.text(words.plain(error))
        return
    weighed = [run for run in runs if run.id in found and found[run.id].weights.size]
    for run in runs:
        if run.id in found and not found[run.id].weights.size:
            st.caption(f"{describe(run.spec.pooling.name).title}: its vector is no weighted sum over the positions.")
    if weighed:
        chosen = _pictures(weighed, [found[run.id] for run in weighed])
        _neighbours(runs, chosen)


def _choose(runs: Sequence[Run]) -> list[Run]:
    """Runs on the same pictures, from ?runs= or the study; the data of the first decide."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(_data(run.spec), []).append(run)
    named = st.query_params.get("runs", "")[:1000].split(",")
    wanted = [run for name in dict.fromkeys(named) for run in runs if run.id == name]
    default = wanted or _of_study() or runs[:1]
    labels = {
        key: f"{live.data_title(group[0].spec.data.name)}, seed {group[0].spec.seed}" for key, group in groups.items()
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        keys = list(groups)
        key = keys[0]
        if len(keys) > 1:
            first = _data(default[0].spec)
            key = st.selectbox(
                "Pictures",
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
    address = "" if picked == [run.id for run in _of_study()] else ",".join(picked)  # the default needs none
    if address != st.query_params.get("runs", ""):
        st.query_params.from_dict(
            {k: v for k, v in st.query_params.to_dict().items() if k != "runs"} | ({"runs": address} if address else {})
        )
    return [group[run_id] for run_id in picked]


def _of_study() -> list[Run]:
    """The finished runs of the study's first seed on collages, in its order."""
    store = RunStore()
    entries = requested(STUDY, store).entries()
    pairs = zip(entries, studies.find(entries, store), strict=True)
    done = [(e.seed, run) for e, run in pairs if e.spec.data.name == "collage" and run and run.embeddings()]
    return [run for seed, run in done if seed == done[0][0]][:FIRST]


def _maps(run: Run) -> WeightMaps | None:
    """The weight maps of a run; without them, the job that makes them, begun unasked."""
    path = weight_maps.path_of(run)
    if path is None:
        live.literal(_label(run), "b")
        job.offer(run, "weigh", at_once=True)
        return None
    return _read(path, path.stat().st_mtime_ns)


@st.cache_resource(max_entries=12, show_spinner=False)
def _read(path: Path, changed: int) -> WeightMaps:
    return weight_maps.read(path)


def _pictures(runs: Sequence[Run], maps: Sequence[WeightMaps]) -> int:
    """The component with some test pictures; the index of the chosen one."""
    name = _naming(runs[0])
    first = maps[0]
    draw = int(untrusted.bounded(st.query_params.get("draw", "0"), 0, LAST, 0))
    rows = np.random.default_rng(draw).permutation(len(first.indices))[:PICTURES]
    asked = _row_of(first, st.query_params.get("query", ""))
    if asked is not None and asked not in rows:
        rows = np.concatenate([[asked], rows[:-1]])
    chosen = int(first.indices[rows[0] if asked is None else asked])
    labels = thumbnails.dataset(runs[0].spec).labels
    weights = [m.weights[rows] for m in maps]
    height, width = weights[0].shape[1:]
    same = [w.shape[1:] == (height, width) for w in weights]
    most = float(max(1.5, max(w.max() * height * width for w, fits in zip(weights, same, strict=True) if fits)))
    tiles = bool((first.tile >= 0).all())
    lines = [
        {
            "name": _label(run),
            "words": _words(run, m),
            "maps": base64.b64encode(np.rint(w * (height * width * 255 / most)).clip(0, 255).astype(np.uint8)).decode(),
            "shares": [round(float(x), 6) for x in m.foreground[rows]]
            if np.isfinite(m.foreground[rows]).all()
            else None,
            "pictures": thumbnails.address(run),
        }
        for run, m, w, fits in zip(runs, maps, weights, same, strict=True)
        if fits
    ]
    shown = [
        {"index": int(i), "name": name(int(labels[i])), "tile": int(t)}
        for i, t in zip(first.indices[rows], first.tile[rows], strict=True)
    ]
    tag = hashlib.sha256(repr((lines, shown)).encode()).hexdigest()[:16]
    opacity = untrusted.bounded(st.query_params.get("opacity", str(OPACITY)), 0, 1, OPACITY)
    _canvas(
        key=KEY,
        data={
            "tag": tag,
            "rows": lines,
            "pictures": shown,
            "side": [height, width],
            "most": most,
            "tiles": tiles,
            "opacity": opacity,
            "chosen": chosen,
        },
        on_chosen_change=_follow_choice,
        on_opacity_change=_follow_opacity,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Other pictures",
            key="other_collages",
            icon=":material/shuffle:",
            on_click=_other,
            args=((draw + 1) % LAST,),
        )
        st.caption(
            f"Light: much weight, on one scale for all rows. A position is one of {height} × {width} local features, "
            "each of which sees beyond its own square, so a map is where the network looks from, not an outline."
        )
    return chosen


def _row_of(maps: WeightMaps, index: str) -> int | None:
    """The row of a sample named in a link, or None."""
    if not (index.isascii() and index.isdigit() and len(index) < 10):
        return None
    rows = np.flatnonzero(maps.indices == int(index))
    return int(rows[0]) if len(rows) else None


def _words(run: Run, maps: WeightMaps) -> str:
    score = live.reader().history(run).scores.get("trained", {}).get("map_at_r")
    share = maps.foreground
    mean = (
        f" · {percent(float(share.mean()))} of the weight on the tile, mean of {len(share):,}"
        if np.isfinite(share).all()
        else ""
    )
    flat = bool(np.ptp(maps.weights, axis=(1, 2)).max() == 0) and run.spec.pooling.name.startswith("gsp")
    early = " · the best weights are from before its prototypes were placed, so it still averages" if flat else ""
    return f"test MAP@R {percent(score)}{mean}{early}"


def _neighbours(runs: Sequence[Run], chosen: int) -> None:
    """The chosen picture as the query of every run."""
    st.subheader("What each run takes for similar", anchor=False)
    st.markdown(
        "The chosen picture is the query; its nearest neighbours among the test pictures: :green[**✓**] of the same "
        "class, :orange[**✗**] of another. Click one to make it the query."
    )
    grid.clicked(CLICK, _follow_click)
    name = _naming(runs[0])
    for run in runs:
        source = run.embeddings()
        try:
            found = learned(source) if source else None
        except Unreadable as error:
            st.text(words.plain(error))
            continue
        row = found.row(str(chosen)) if found else None
        if found is None or row is None:
            continue
        right = int(found.right[row, :NEIGHBOURS].sum())
        live.literal(f"{_label(run)}: {right} of {NEIGHBOURS} right", "b")
        neighbours = zip(
            found.neighbours[row, :NEIGHBOURS],
            found.distances[row, :NEIGHBOURS],
            found.right[row, :NEIGHBOURS],
            strict=True,
        )
        tiles: list[grid.Row] = [
            (
                grid.Tile(chosen, name(int(found.labels[row])), (f"AP@R {percent(found.average_precision[row])}",)),
                [
                    grid.Neighbour(
                        int(found.indices[other]), name(int(found.labels[other])), (f"{distance:.3f}",), bool(ok)
                    )
                    for other, distance, ok in neighbours
                ],
            )
        ]
        st.html(grid.html(tiles, thumbnails.address(run), lambda index: f"?{urlencode({'query': index})}"))


def _label(run: Run) -> str:
    title = describe(run.spec.pooling.name).title
    zero_shot = " + zero-shot" if run.spec.pooling.zero_shot else ""
    return f"{title}{zero_shot} · {run.id[-4:]}"


def _naming(run: Run) -> Callable[[int], str]:
    """Names of classes in words: those of CIFAR have underscores."""
    name = naming(run)
    return lambda label: name(label).replace("_", " ")


def _data(spec: RunSpec) -> str:
    """What decides the pictures and their order."""
    return RunSpec(seed=spec.seed, data=spec.data).to_json()


def _follow_choice() -> None:
    _ask(st.session_state[KEY].get("chosen"))


def _follow_click() -> None:
    _ask(st.session_state[CLICK]["query"])


def _ask(index: object) -> None:
    if isinstance(index, int) and 0 <= index < 10**9:
        st.query_params["query"] = str(index)


def _follow_opacity() -> None:
    opacity = untrusted.bounded(st.session_state[KEY].get("opacity"), 0, 1, OPACITY)
    if opacity == OPACITY:
        st.query_params.pop("opacity", None)
    else:
        st.query_params["opacity"] = f"{opacity:.2f}"


def _other(draw: int) -> None:
    st.query_params["draw"] = str(draw)
    st.query_params.pop("query", None)
