"""The trials of a search: ordinary runs, listed by an Optuna study in SQLite; as many workers as wish make them.

The objective is the best validation MAP@R of a run, never a test score. Whatever stops a worker, its trial is failed
and its point queued again; the run of that point is found by its spec and goes on from its checkpoint.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlcore.experiments.search.space import SearchSpace
from dmlcore.experiments.studies import StudyRun, find
from dmlcore.experiments.studies.run_batch import refuse_missing_data, work_on
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage import atomic_files, locks
from dmlcore.storage.runs import Run, RunStore

if TYPE_CHECKING:
    import optuna

RETRIES = 1  # of a trial whose worker was killed
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrialRow:
    """One trial for a table; value: validation MAP@R in 0..1."""

    number: int
    state: str
    value: float | None
    values: dict[str, Any]
    run: str
    message: str


def url_of(search: SearchSpace, store: RunStore) -> str:
    """Where a search is kept if no other storage is given: .searches/NAME.db in the run store."""
    return f"sqlite:///{store.root / '.searches' / search.name}.db"


def conduct(
    search: SearchSpace,
    store: RunStore,
    *,
    storage: str = "",
    report: Callable[[str], object] = log.info,
    stop: Callable[[], bool] = lambda: False,
    train: Callable[[Run, Callable[[], bool]], object] = work_on,
) -> bool:
    """Make trials until there are as many as asked for, beside other workers on the same search; False if stopped.

    train: makes a run and returns at its end. Raises SpecError if a search of this name was begun otherwise, DataError.
    """
    refuse_missing_data([StudyRun("", search.seed, search.base)])
    with _one_at_a_time(search, store):
        study = _study(search, store, storage)
    while not stop():
        with _one_at_a_time(search, store):
            _fail_stale(study, store, report)
            asked = _ask(search, study)
            if asked is None:
                return True
            trial, spec = asked
            run = find([StudyRun("", spec.seed, spec)], store)[0] or store.create(spec)
            trial.set_user_attr("run", run.id)
        label = f"trial {trial.number + 1}: {run.id}"
        report(f"{label}: {_words(trial.params)}")
        if run.state().state != "done":
            train(run, stop)
            if run.status() == "lost" and not stop():  # killed alone, without its worker
                train(run, stop)
        with _one_at_a_time(search, store):
            _tell(study, trial, run, stop(), report, label)
    report("stopped as asked; the same command goes on from there")
    return False


def trials(search: SearchSpace, store: RunStore, storage: str = "") -> list[TrialRow]:
    """Every trial so far, in order."""
    with _one_at_a_time(search, store):
        stored = _study(search, store, storage).get_trials(deepcopy=False)
    return [
        TrialRow(
            trial.number + 1,
            trial.state.name.lower(),
            trial.value,
            dict(trial.params or trial.system_attrs.get("fixed_params", {})),
            trial.user_attrs.get("run", ""),
            trial.user_attrs.get("message", ""),
        )
        for trial in stored
    ]


def best(search: SearchSpace, rows: Sequence[TrialRow]) -> RunSpec | None:
    """The spec of the trial with the highest validation MAP@R, named after the search; None before one is done."""
    done = [row for row in rows if row.value is not None]
    if not done:
        return None
    first = max(done, key=lambda row: (row.value or 0.0, -row.number))
    return search.spec(first.values).model_copy(update={"name": f"best of {search.name}"})


def write_best(spec: RunSpec, search: SearchSpace, store: RunStore) -> Path:
    """Write the best spec as .searches/NAME.best.toml."""
    path = store.root / ".searches" / f"{search.name}.best.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.replace(path, lambda file: file.write(spec.to_toml().encode()))
    return path


def validation_baselines(rows: Sequence[TrialRow], store: RunStore) -> dict[str, float]:
    """Validation MAP@R of raw inputs and of the network before its first step, from the first trial that has them."""
    for row in rows:
        if row.value is None or not row.run:
            continue
        metrics = store.open(row.run).metrics()[0]
        raw = [r["map_at_r"] for r in metrics if r.get("kind") == "baseline" and r["part"] == "validation"]
        first = [r["map_at_r"] for r in metrics if r.get("kind") == "validation" and r["step"] == 0]
        levels = {"raw inputs": raw[:1], "untrained network": first[:1]}
        return {name: values[0] for name, values in levels.items() if values and values[0] is not None}
    return {}


def as_text(rows: Sequence[TrialRow], beside: Mapping[str, float] | None = None) -> str:
    """The trials as a table, best first, what failed last; beside: baselines, at its head."""
    ordered = sorted(rows, key=lambda row: (row.value is None, -(row.value or 0.0), row.number))
    lines = [["trial", "validation MAP@R", "state", "point", "run"]]
    lines += [["-", f"{100 * value:.2f} %", name, "", ""] for name, value in (beside or {}).items()]
    for row in ordered:
        value = "-" if row.value is None else f"{100 * row.value:.2f} %"
        state = row.state + (f" ({row.message})" if row.message else "")
        lines.append([str(row.number), value, state, _words(row.values), row.run])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


@contextlib.contextmanager
def _one_at_a_time(search: SearchSpace, store: RunStore) -> Iterator[None]:
    """What reads and changes the list of trials; other workers wait. Optuna is quiet meanwhile."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = store.root / ".searches"
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), locks.ProcessLock(folder / f"{search.name}.lock", wait=60.0):
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def _study(search: SearchSpace, store: RunStore, storage: str) -> optuna.Study:
    """The study of this name, made with all points of a grid if it is new; raises SpecError if it is another one."""
    import optuna

    url = storage or url_of(search, store)
    waiting = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {}
    study = optuna.create_study(
        study_name=search.name,
        storage=optuna.storages.RDBStorage(url, engine_kwargs=waiting),
        direction="maximize",
        load_if_exists=True,
    )
    what = {
        "base": search.base.model_copy(update={"name": ""}).to_json(),
        "space": repr(search.space),
        "method": search.method,
        "seed": search.seed,
    }
    known = study.user_attrs
    if changed := [key for key, value in what.items() if known.get(key, value) != value]:
        raise SpecError(f"{search.name}: was begun with another {changed[0]}; choose another --name")
    if len(known) < len(what):
        if search.method == "grid":
            for values in itertools.product(*(dimension.grid() for dimension in search.space)):
                point = dict(zip((d.key for d in search.space), values, strict=True))
                study.enqueue_trial(point, skip_if_exists=True)
        for key, value in what.items():
            study.set_user_attr(key, value)
    return study


def _ask(search: SearchSpace, study: optuna.Study) -> tuple[optuna.Trial, RunSpec] | None:
    """The next trial with its spec, or None if there are as many as asked for."""
    from optuna.trial import TrialState

    known = study.get_trials(deepcopy=False)
    waiting = [trial for trial in known if trial.state == TrialState.WAITING]
    begun = [trial for trial in known if trial.state != TrialState.WAITING and not trial.user_attrs.get("again")]
    if len(begun) >= search.trials or (search.method == "grid" and not waiting):
        return None
    study.sampler = _sampler(search, len(known))
    trial = study.ask({dimension.key: dimension.distribution() for dimension in search.space})
    trial.set_user_attr("worker", [os.getpid(), locks.start_time(os.getpid())])
    return trial, search.spec(trial.params)


def _sampler(search: SearchSpace, number: int) -> optuna.samplers.BaseSampler:
    """For one trial, by its number: so workers draw different points, and one worker always the same."""
    from optuna import samplers

    seed = int(np.random.SeedSequence([search.seed, number]).generate_state(1)[0])
    if search.method == "tpe":
        return samplers.TPESampler(seed=seed)
    return samplers.GPSampler(seed=seed) if search.method == "gp" else samplers.RandomSampler(seed=seed)


def _tell(
    study: optuna.Study, trial: optuna.Trial, run: Run, stopped: bool, report: Callable[[str], object], label: str
) -> None:
    from optuna.trial import TrialState

    state, value = run.state(), score(run)
    if state.state == "done" and value is not None:
        study.tell(trial, value)
        report(f"{label}: validation MAP@R {100 * value:.2f} %")
        return
    if state.state == "done":
        trial.set_user_attr("message", "no validation could be scored")
    elif stopped:
        trial.set_user_attr("message", "stopped, queued again")
        _again(study, trial.params, trial.set_user_attr, trial.user_attrs.get("retries", 0))
    else:
        trial.set_user_attr("message", state.message or run.status())
    study.tell(trial, state=TrialState.FAIL)
    report(f"{label}: {trial.user_attrs['message']}")


def _again(study: optuna.Study, values: dict[str, Any], mark: Callable[[str, Any], object], retries: int) -> None:
    """Queue a point again; the trial that failed no longer counts."""
    mark("again", True)
    study.enqueue_trial(values, user_attrs={"retries": retries})


def _fail_stale(study: optuna.Study, store: RunStore, report: Callable[[str], object]) -> None:
    """Fail the trials whose worker is gone, and queue their points again, once."""
    from optuna.trial import Trial, TrialState

    for frozen in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        pid, started = frozen.user_attrs.get("worker", (0, None))
        if pid and locks.start_time(pid) == started:
            continue
        trial, retries = Trial(study, frozen._trial_id), frozen.user_attrs.get("retries", 0)
        if retries < RETRIES:
            trial.set_user_attr("message", "its worker was killed, queued again")
            _again(study, frozen.params, trial.set_user_attr, retries + 1)
        else:
            trial.set_user_attr("message", "its worker was killed again")
        study.tell(trial, state=TrialState.FAIL)
        report(f"trial {frozen.number + 1}: {trial.user_attrs['message']}")


def score(run: Run) -> float | None:
    """The best validation MAP@R of a run in 0..1, or None if nothing was validated."""
    rows = [row for row in run.metrics()[0] if row.get("kind") == "validation" and "part" not in row]
    values = [row["map_at_r"] for row in rows if row["map_at_r"] is not None]
    return max(values, default=None)


def _words(values: dict[str, Any]) -> str:
    shown = {key: f"{value:.4g}" if isinstance(value, float) else str(value) for key, value in values.items()}
    return ", ".join(f"{key}={value}" for key, value in shown.items())
