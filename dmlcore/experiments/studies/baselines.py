"""Baselines for the written results of a study, computed from the specs of its runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dmlcore.experiments.studies.conductor import StudyRequest
from dmlcore.experiments.studies.expansion import StudyRun
from dmlcore.experiments.studies.results import StudyResults, load, measure, results_path, save
from dmlcore.experiments.studies.run_batch import find
from dmlcore.experiments.studies.spec import PRETRAINING
from dmlcore.significance import verdicts
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.runs import RunStore

if TYPE_CHECKING:
    from dmlcore.data import Dataset

SAME = 1e-6  # maximum difference in MAP@R, due to rounding, at which two pretraining runs are considered equal


def add(name: str, store: RunStore, *, report: Callable[[str], object] = lambda _: None) -> Path:
    """Add the baselines of each run to the written results of a study, save the file and return its path.

    The baselines are chance, raw inputs and the untrained network, on the run's split and with its seed. The pretrained
    network is added if the store has a pretraining run with the score in the written results; a run with another score
    has different weights.

    Raises:
        SpecError: If no results are written, or the study has changed since.
        DataError: If the data set is missing.
    """
    written = load(name)
    if written is None:
        raise SpecError(f"{name}: there are no written results; create them with --write")
    request = StudyRequest(
        study=name, overrides=written.overrides, seeds=tuple(dict.fromkeys(run.seed for run in written.runs))
    )
    entries = {entry.digest(): entry for entry in request.entries()}
    if changed := [run for run in written.runs if run.digest not in entries]:
        raise SpecError(
            f"{name}: the study has changed since its results were written ({changed[0].variant}, seed "
            f"{changed[0].seed}), so their baselines are unknown; measure the study again"
        )
    starts = _pretrained(written, list(entries.values()), store)
    measure = _Measure()
    runs = []
    for number, run in enumerate(written.runs, 1):
        entry = entries[run.digest]
        report(f"run {number} of {len(written.runs)}: {run.variant}, seed {run.seed}")
        scores = measure(entry.spec)
        if entry.starts and (start := starts.get(entry.starts.seed)):
            scores = measure(entry.after(start)) | scores
        runs.append(run.model_copy(update={"baselines": scores}))
    return save(written.model_copy(update={"runs": tuple(runs)}), results_path(name))


def _pretrained(written: StudyResults, entries: list[StudyRun], store: RunStore) -> dict[int, str]:
    """Return the id of the pretraining run for each seed, if the store has it and it reaches the written score."""
    known = {run.digest: run for run in written.runs}
    wanted = [entry for entry in entries if entry.variant == PRETRAINING and entry.digest() in known]
    checkpoints = {}
    for entry, run in zip(wanted, find(wanted, store), strict=True):
        measured = measure(entry, run) if run else None
        if measured and abs(measured.scores["map_at_r"] - known[entry.digest()].scores["map_at_r"]) < SAME:
            checkpoints[entry.seed] = measured.run
    return checkpoints


class _Measure:
    """Function that returns the baselines of a spec; equal data and weights are computed only once."""

    def __init__(self) -> None:
        self._data: dict[str, Dataset] = {}
        self._known: dict[str, dict[str, dict[str, float]]] = {}

    def __call__(self, spec: RunSpec) -> dict[str, dict[str, float]]:
        from dmlcore.storage import checkpoint  # imported here because these modules import torch
        from dmlcore.training import baselines
        from dmlcore.training.build import build, load_data, prepare_device
        from dmlcore.training.state import embedder

        data = f"{spec.data.model_dump_json()} {spec.seed}"
        if data not in self._data:
            if len(self._data) > 1:
                self._data.clear()  # runs are sorted by seed
            self._data[data] = load_data(spec)
        device = prepare_device("cpu", 1)
        state = build(spec, self._data[data], device)
        weights = checkpoint.digest_of(embedder(state).state_dict())
        key = f"{data} {weights}"
        if key not in self._known:
            self._known[key] = verdicts.baselines(baselines.first_rows(state), started=bool(spec.model.start))
        return self._known[key]
