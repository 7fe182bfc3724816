"""Trials of a search: ordinary runs, listed by an Optuna study in SQLite and trained by any number of workers.

The objective is the best validation MAP@R of a run, never a test score. If a worker is killed, its trial fails and its
point is queued again; the run of that point is found by its spec and resumes from its checkpoint.
"""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlcore.experiments.search.space import SearchSpace
from dmlcore.experiments.studies import StudyRun, find
from dmlcore.experiments.studies.run_batch import refuse_missing_data
from dmlcore.jobs.backends.backend import Backend, LocalBackend, Work
from dmlcore.jobs.backends.side_by_side import ConcurrentWork, Pause
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage import atomic_files, locks
from dmlcore.storage.runs import Run, RunStore, best_validation

if TYPE_CHECKING:
    import optuna

LEARNS_FROM = 5  # methods that learn from results run at most 1 / LEARNS_FROM of the trials concurrently
RETRIES = 1  # retries of a trial whose worker was killed
_CHECKED: set[str] = set()  # databases whose schema this process has checked; each check takes 30 ms
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrialRow:
    """One trial of a search; `value` is its validation MAP@R in 0..1, `values` maps each searched key to its value."""

    number: int
    state: str
    value: float | None
    values: dict[str, Any]
    run: str
    message: str


def storage_of(search: SearchSpace, store: RunStore, *, many_nodes: bool = False) -> str:
    """Return the default Optuna storage of a search, in `.searches` of the run store.

    A search keeps the storage that it was started with. New searches use SQLite or, with `many_nodes`, a journal file,
    which works on file systems shared by several machines.
    """
    folder = store.root / ".searches"
    journal, database = folder / f"{search.name}.journal", folder / f"{search.name}.db"
    if journal.exists() or (many_nodes and not database.exists()):
        return str(journal)
    return f"sqlite:///{database}"


def conduct(
    search: SearchSpace,
    store: RunStore,
    *,
    storage: str = "",
    report: Callable[[str], object] = log.info,
    stop: Callable[[], bool] = lambda: False,
    where: Backend | None = None,
) -> bool:
    """Run trials until the requested number exists, in parallel with other workers; return False if stopped.

    Args:
        search: The search.
        store: The run store.
        storage: Optuna storage; see `storage_of` for the default.
        report: Callback for progress messages.
        stop: Returns True to stop.
        where: Backend that trains the runs; by default this machine, one run after another.

    Raises:
        SpecError: If a search of this name was started with other settings.
        DataError: If the data set is missing.
    """
    refuse_missing_data([StudyRun("", search.seed, search.base)])
    where = where or LocalBackend()
    with _one_at_a_time(search, store):
        study = _study(search, store, storage)
    # A method that learns from results needs some of them before it proposes the next point.
    learns = search.method in ("tpe", "gp")
    max_concurrent = min(where.max_concurrent, max(1, search.trials // LEARNS_FROM)) if learns else where.max_concurrent
    concurrent, under_way = ConcurrentWork(max_concurrent, stop), set[str]()
    begun: list[int] = []

    def courses() -> Iterator[Iterator[Work]]:
        while (asked := _next(search, study, store, report)) is not None:
            begun.append(asked[0].number)
            yield _course(search, study, store, *asked, where, stop, report, under_way)

    before = -1
    while before < len(begun) and not stop():  # repeat, because a finished trial may allow another one
        before = len(begun)
        concurrent.run_to_end(courses())
    if stop():
        report("stopped as requested; run the same command again to continue")
    return not stop()


def _next(
    search: SearchSpace, study: optuna.Study, store: RunStore, report: Callable[[str], object]
) -> tuple[optuna.Trial, Run] | None:
    """Start the next trial and return it with its run, or None if there is nothing left to start."""
    with _one_at_a_time(search, store):
        _fail_stale(study, store, report)
        asked = _ask(search, study)
        if asked is None:
            return None
        trial, spec = asked
        run = find([StudyRun("", spec.seed, spec)], store)[0] or store.create(spec)
        trial.set_user_attr("run", run.id)
        return trial, run


def _course(
    search: SearchSpace,
    study: optuna.Study,
    store: RunStore,
    trial: optuna.Trial,
    run: Run,
    where: Backend,
    stop: Callable[[], bool],
    report: Callable[[str], object],
    under_way: set[str],
) -> Iterator[Work]:
    """Yield the work that trains the run of a trial, then report its score to Optuna.

    `under_way` holds the ids of runs that other trials are training. Two trials with equal settings share a run, so the
    second waits for the first.
    """
    label = f"trial {trial.number + 1}: {run.id}"
    report(f"{label}: {_words(trial.params)}")
    if run.id in under_way:
        yield Pause(lambda: run.id not in under_way)
    under_way.add(run.id)
    if run.state().state != "done" and not stop():
        yield where.begin(run, "train")
        # the process of the run was killed, but this worker was not: train the run once more
        if run.status() == "lost" and not stop():
            yield where.begin(run, "train")
    under_way.discard(run.id)
    with _one_at_a_time(search, store):
        _tell(study, trial, run, stop(), report, label)


def trials(search: SearchSpace, store: RunStore, storage: str = "") -> list[TrialRow]:
    """Return all trials of a search so far, in order."""
    with _one_at_a_time(search, store):
        return _rows(_study(search, store, storage))


def _rows(study: optuna.Study) -> list[TrialRow]:
    return [
        TrialRow(
            trial.number + 1,
            trial.state.name.lower(),
            trial.value,
            dict(trial.params or trial.system_attrs.get("fixed_params", {})),
            trial.user_attrs.get("run", ""),
            trial.user_attrs.get("message", ""),
        )
        for trial in study.get_trials(deepcopy=False)
    ]


def optima(rows: Iterable[TrialRow]) -> dict[str, Any]:
    """Return the best value of each key that was varied alone, if its score exceeds that of the base spec."""
    done = [(row.value, -row.number, row.values) for row in rows if row.value is not None and len(row.values) < 2]
    base = max((value for value, _, values in done if not values), default=0.0)
    better: dict[str, Any] = {}
    # in increasing order, so that the best value of a key is kept
    for value, _, values in sorted(done, key=lambda trial: trial[:2]):
        better |= values if value > base else {}
    return better


def best(search: SearchSpace, rows: Sequence[TrialRow]) -> RunSpec | None:
    """Return the spec of the trial with the highest validation MAP@R, or None if no trial is done.

    The `name` of the spec names the search.
    """
    done = [row for row in rows if row.value is not None]
    if not done:
        return None
    first = max(done, key=lambda row: (row.value or 0.0, -row.number))
    return search.spec(first.values).model_copy(update={"name": f"best of {search.name}"})


def write_best(spec: RunSpec, search: SearchSpace, store: RunStore) -> Path:
    """Write the best spec to `.searches/NAME.best.toml` in the run store, and return its path."""
    path = store.root / ".searches" / f"{search.name}.best.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.replace(path, lambda file: file.write(spec.to_toml().encode()))
    return path


def validation_baselines(rows: Sequence[TrialRow], store: RunStore) -> dict[str, float]:
    """Return the validation MAP@R of the baselines without training, from the first trial that has them."""
    for row in rows:
        if row.value is None or not row.run:
            continue
        metrics = store.open(row.run).metrics()[0]
        of = {r["of"]: r["map_at_r"] for r in metrics if r.get("kind") == "baseline" and r["part"] == "validation"}
        first = [r["map_at_r"] for r in metrics if r.get("kind") == "validation" and r["step"] == 0]
        levels = {"raw inputs": of.get("inputs"), "untrained network": next(iter(first), None)}
        levels["whitened features"] = of.get("whitened")
        return {name: value for name, value in levels.items() if value is not None}
    return {}


def as_text(rows: Sequence[TrialRow], baselines: Mapping[str, float] | None = None) -> str:
    """Format the trials as a table, best first and failed ones last; the baselines are its first rows."""
    ordered = sorted(rows, key=lambda row: (row.value is None, -(row.value or 0.0), row.number))
    lines = [["trial", "validation MAP@R", "state", "point", "run"]]
    lines += [["-", f"{100 * value:.2f} %", name, "", ""] for name, value in (baselines or {}).items()]
    for row in ordered:
        value = "-" if row.value is None else f"{100 * row.value:.2f} %"
        state = row.state + (f" ({row.message})" if row.message else "")
        lines.append([str(row.number), value, state, _words(row.values), row.run])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


@contextlib.contextmanager
def _one_at_a_time(search: SearchSpace, store: RunStore) -> Iterator[None]:
    """Hold the lock under which only one worker at a time may change the search's trials, and silence Optuna."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = store.root / ".searches"
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), locks.ProcessLock(folder / f"{search.name}.lock", wait=60.0):
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def _study(search: SearchSpace, store: RunStore, storage: str) -> optuna.Study:
    """Return the Optuna study of the search, creating it if it is new.

    For the methods "grid" and "each", all points are enqueued when the study is created.

    Raises:
        SpecError: If a study of this name has other settings.
    """
    import optuna

    study = optuna.create_study(
        study_name=search.name,
        storage=_storage(storage or storage_of(search, store)),
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
        raise SpecError(f"{search.name}: was started with a different {changed[0]}; choose another --name")
    if len(known) < len(what):
        if search.method in ("grid", "each"):
            for point in search.points():
                study.enqueue_trial(point, skip_if_exists=True)
        for key, value in what.items():
            study.set_user_attr(key, value)
    return study


def _storage(where: str) -> optuna.storages.BaseStorage:
    """Open the Optuna storage at a path (journal) or database URL."""
    from optuna import storages
    from optuna.storages.journal import JournalFileBackend

    if where.endswith(".journal") and "://" not in where:
        return storages.JournalStorage(JournalFileBackend(where))
    waiting = {"connect_args": {"timeout": 60}} if where.startswith("sqlite") else {}
    database = storages.RDBStorage(where, engine_kwargs=waiting, skip_compatibility_check=where in _CHECKED)
    _CHECKED.add(where)
    return database


def _ask(search: SearchSpace, study: optuna.Study) -> tuple[optuna.Trial, RunSpec] | None:
    """Ask Optuna for the next trial and return it with its spec, or None if there is nothing left to start."""
    from optuna.trial import TrialState

    known = study.get_trials(deepcopy=False)
    waiting = [trial for trial in known if trial.state == TrialState.WAITING]
    begun = [trial for trial in known if trial.state != TrialState.WAITING and not trial.user_attrs.get("again")]
    if len(begun) >= search.trials:
        return None
    if search.method == "each" and not waiting and not study.get_trials(False, (TrialState.RUNNING,)):
        if len(together := optima(_rows(study))) > 1:
            study.enqueue_trial(together, skip_if_exists=True)
        waiting = study.get_trials(False, (TrialState.WAITING,))
    if search.method in ("grid", "each") and not waiting:
        return None
    study.sampler = _sampler(search, len(known))
    asked = {dimension.key for dimension in search.space}
    if search.method == "each":  # ask only for the key of the next queued point; the others keep their base values
        asked = set(waiting[0].system_attrs["fixed_params"])
    trial = study.ask({d.key: d.distribution() for d in search.space if d.key in asked})
    trial.set_user_attr("worker", [os.getpid(), locks.start_time(os.getpid())])
    return trial, search.spec(trial.params)


def _sampler(search: SearchSpace, number: int) -> optuna.samplers.BaseSampler:
    """Return the sampler for one trial, seeded by the trial number, so that workers draw different, reproducible
    points.
    """
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
    """Queue a point again, and use `mark` to exclude its failed trial from the number of trials."""
    mark("again", True)
    study.enqueue_trial(values, user_attrs={"retries": retries})


def _fail_stale(study: optuna.Study, store: RunStore, report: Callable[[str], object]) -> None:
    """Fail running trials whose worker was killed; queue their points again, at most RETRIES times."""
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
    """Return the best validation MAP@R of a run in 0..1, or None if there is no score."""
    return best_validation(run.metrics()[0])


def _words(values: dict[str, Any]) -> str:
    shown = {key: f"{value:.4g}" if isinstance(value, float) else str(value) for key, value in values.items()}
    return ", ".join(f"{key}={value}" for key, value in shown.items()) or "as in the base"
