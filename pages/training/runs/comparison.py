"""Comparison of two to four runs: comparability warnings, different settings, scores, and exports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from dmlcore.monitoring import comparability
from dmlcore.monitoring.comparability import ComparabilityIssue
from dmlcore.spec import flat
from dmlcore.storage import arrays
from dmlcore.storage.arrays import EMBEDDINGS, Unreadable
from dmlcore.storage.csv_text import as_csv
from dmlcore.storage.runs import Run, RunStore
from pages.shared.state import run_reader, time_left
from pages.shared.widgets import run_status
from pages.shared.widgets.results import score_columns
from pages.shared.words import sentences as words
from pages.shared.words import titles
from pages.shared.words.numbers import percent

MOST = 4
MOST_CLASSES = 20  # largest number of classes in the table; those with the largest differences are shown
UNTRAINED = {  # rows of the table of results
    "inputs": "MAP@R of raw inputs",
    "untrained": "MAP@R before training",
    "features": "MAP@R of frozen features",
    "pca_whitened": "MAP@R of PCA-whitened features",
    "whitened": "MAP@R of features whitened within classes",
}
LOOKS: Mapping[str, run_status.Look] = {
    "incomparable": ("incomparable", ":material/block:", "red"),
    "caution": ("caution", ":material/warning:", "orange"),
    "note": ("note", ":material/info:", "gray"),
}


def show(runs: Sequence[Run]) -> None:
    """Show the comparison of two to MOST runs; do nothing for any other number of runs."""
    if not 2 <= len(runs) <= MOST:
        return
    st.subheader("Side by side", anchor=False)
    _lint(runs)
    names = [titles.label(run) for run in runs]
    summary, specs = _summarise(runs), differences(runs)
    st.markdown("**Results**")
    st.dataframe(_transposed(summary, names), hide_index=True, key="reached", height="content", placeholder="–")
    st.markdown("**Different settings**")
    if specs:
        shown = {words.setting(key): [words.value(key, each) for each in values] for key, values in specs.items()}
        st.dataframe(_transposed(shown, names, "setting"), hide_index=True, key="specs", height="content")
    else:
        st.caption("The settings are identical; any difference in scores comes from the machine.")
    _classes(runs, names)
    _exports(runs, names, summary, specs)


def differences(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Return the settings that differ: one value per run for each key, None for a run that lacks the key."""
    specs = [flat(run.spec) for run in runs]
    names = list(dict.fromkeys(key for spec in specs for key in spec))
    by_key = {key: [spec.get(key) for spec in specs] for key in names}
    return {key: values for key, values in by_key.items() if any(value != values[0] for value in values)}


def _lint(runs: Sequence[Run]) -> None:
    states = tuple((run.id, run.status()) for run in runs)
    warnings = _warnings(str(runs[0].path.parent), states)
    if not warnings:
        st.caption("No obstacle to a comparison found.")
    for warning in warnings:
        word, icon, colour = LOOKS[warning.severity]
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(word, icon=icon, color=colour)
            run_status.literal(words.plain(warning.sentence))


@st.cache_data(max_entries=64, show_spinner=False)
def _warnings(root: str, states: tuple[tuple[str, str], ...]) -> list[ComparabilityIssue]:
    """Return comparability warnings for the runs given as (id, status) pairs.

    The status is part of the cache key, because a finished run may cause further warnings.
    """
    store = RunStore(root)
    return comparability.lint([store.open(run_id) for run_id, _ in states])


def _summarise(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Return, for each quantity such as the best checkpoint or a test score, one value per run (None if unknown)."""
    rows = []
    for run in runs:
        history, state = run_reader.reader().history(run), run.state()
        trained = history.scores.get("trained")
        steps, values = history.validation.arrays()
        row: dict[str, Any] = {"status": run.status(), "steps": time_left.took(run, state, f"{state.step:,}")}
        if len(values):
            best = int(np.argmax(values))
            row["best checkpoint"] = f"step {steps[best]:,}, validation MAP@R {percent(float(values[best]))}"
        for subject, words_of in UNTRAINED.items():
            if score := history.scores.get(subject):
                row[words_of] = percent(score["map_at_r"])
        if trained:
            row |= {"tested checkpoint": f"step {trained['step']:,}"} | score_columns(trained)
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def _transposed(table: dict[str, list[Any]], names: Sequence[str], first: str = "quantity") -> list[dict[str, Any]]:
    """Return one record per key of `table`, with the key in column `first` and the values in one column per run."""
    return [
        {first: key} | {name: _cell(value) for name, value in zip(names, values, strict=True)}
        for key, values in table.items()
    ]


def _cell(value: Any) -> str | None:
    if value is None:
        return None
    return (
        f"{value:g}"
        if isinstance(value, float)
        else ", ".join(map(str, value))
        if isinstance(value, tuple)
        else str(value)
    )


def _classes(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Show MAP@R by test class, largest difference first, if there are exactly two runs tested on the same classes."""
    if len(runs) != 2:
        return
    first, second = (_per_class(run) for run in runs)
    shared = sorted(first.keys() & second.keys())
    if not shared or first.keys() != second.keys():
        return
    shared.sort(key=lambda label: -abs(second[label] - first[label]))
    with st.expander("Class by class", icon=":material/category:", key="open-classes"):
        rows = [
            {
                "class": label,
                names[0]: 100 * first[label],
                names[1]: 100 * second[label],
                "difference": 100 * (second[label] - first[label]),
            }
            for label in shared[:MOST_CLASSES]
        ]
        shape = {name: st.column_config.NumberColumn(format="%.1f %%") for name in names}
        shape["difference"] = st.column_config.NumberColumn(format="%+.1f")
        st.dataframe(rows, hide_index=True, key="classes", column_config=shape, width="stretch")
        better = sum(second[label] > first[label] for label in shared)
        st.caption(
            f"MAP@R by test class, largest difference first. The second run is better in {better} of "
            f"{len(shared)} classes."
        )


def _per_class(run: Run) -> dict[int, float]:
    path = run.embeddings()
    if path is None:
        return {}
    try:
        stored = arrays.read(path, EMBEDDINGS, "class_labels", "class_map_at_r", remedy="Evaluate the run again")
    except Unreadable as error:
        st.text(str(error))
        return {}
    if len(stored) < 2:
        return {}
    pairs = zip(stored["class_labels"].tolist(), stored["class_map_at_r"].tolist(), strict=True)
    return {label: value for label, value in pairs if value == value}


def _exports(runs: Sequence[Run], names: Sequence[str], summary: dict[str, Any], specs: dict[str, Any]) -> None:
    """Show downloads of results and different settings as CSV and JSON, and the command that prints the warnings."""
    ids = [run.id for run in runs]
    lines = [[key, *map(_cell, values)] for table in (summary, specs) for key, values in table.items()]
    text = as_csv([["", *ids], *lines])
    scores = {run.id: run_reader.reader().history(run).scores for run in runs}
    plain = {
        "runs": {run.id: name for run, name in zip(runs, names, strict=True)},
        "scores": scores,
        "specs": {run.id: json.loads(run.spec.to_json()) for run in runs},
        "differences": {key: dict(zip(ids, map(_cell, values), strict=True)) for key, values in specs.items()},
    }
    with st.container(horizontal=True):
        st.download_button("CSV", text, "comparison.csv", "text/csv", key="compare-csv", on_click="ignore")
        st.download_button(
            "JSON",
            json.dumps(plain, indent=1, allow_nan=False),
            "comparison.json",
            "application/json",
            key="compare-json",
            on_click="ignore",
        )
    st.code(f"python -m dmlcore lint {' '.join(ids)}", language="bash", wrap_lines=True)
