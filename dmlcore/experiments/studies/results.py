"""Results of a study: scores read from its runs, summarised as a table, and written next to the study file."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dmlcore.experiments.studies import threshold_scores
from dmlcore.experiments.studies.candidates import best, collect_scores
from dmlcore.experiments.studies.conductor import StudyRequest
from dmlcore.experiments.studies.expansion import StudyRun
from dmlcore.experiments.studies.run_batch import describe_machine, find
from dmlcore.experiments.studies.scores_by_test import BY_STEP, BY_STEP_AND_SETTING, best_settings, best_step
from dmlcore.experiments.studies.shown_maps import PoolingMaps, maps_of
from dmlcore.experiments.studies.spec import PRETRAINING, path_of, read
from dmlcore.inspection.local import weight_maps
from dmlcore.significance import verdicts
from dmlcore.spec import SpecError
from dmlcore.storage import atomic_files
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.listing import FileCache
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import Run, RunError, RunStore, best_validation, scores, series

# Kinds of rows in metrics.jsonl whose numbers are added to the table, with the names of the numbers; () adds all.
FURTHER: Mapping[str, tuple[str, ...]] = {
    "train": (),
    "overlap": (),
    "zero_shot": (),
    "tested_covering": (),
    "fixed_neighbours": ("recall_at_1", "before_recall_at_1", "chance_recall_at_1", "reach"),
}
MOST_POINTS = 200  # maximum number of points in a written validation curve


class _StudyModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ValidationCurve(_StudyModel):
    """Validation MAP@R of a run, in 0..1, by step."""

    step: tuple[int, ...] = ()
    map_at_r: tuple[float, ...] = ()


class Measured(_StudyModel):
    """Scores of one finished run of a study.

    Keys of `scores` are map_at_r, recall_at_1, foreground, and "kind.number" for the rows listed in FURTHER.
    """

    variant: str
    seed: int
    digest: str  # digest of its entry
    scores: dict[str, float]
    validation: ValidationCurve
    steps: int
    seconds: float
    device: str
    run: str = ""  # run id in the store from which the scores were read
    fold: int = 0  # number of the fold, from 1; 0 without folds
    best_step: int | None = None  # step of the tested weights; 0 if no validation improved on the initial weights
    validated: float | None = None  # best validation MAP@R
    classes: tuple[float, ...] = ()  # mean AP@R of each test class, ordered by class; filled only in written results
    candidate: str = ""  # chosen candidate of the variant: its overrides; "" if the variant has no candidates
    # each candidate of the variant -> best validation MAP@R in 0..1 with each choice seed
    candidates: dict[str, tuple[float, ...]] = {}
    # baseline ("chance", "inputs", "untrained" or "pretrained") -> score name -> score
    baselines: dict[str, dict[str, float]] = {}


class StudyResults(_StudyModel):
    """Contents of a results file: the measured runs, and the date, torch version and machine of the measurement."""

    study: str
    written: str  # date
    torch: str
    machine: str
    data: dict[str, tuple[str, ...]] = Field(description="Notes of each data set on the available subset")
    overrides: tuple[str, ...] = ()
    seconds: float = 0.0  # training time of all runs, rejected candidates included; 0 in older files
    runs: tuple[Measured, ...]
    maps: PoolingMaps | None = None  # for a study on collages


def measure(entry: StudyRun, run: Run) -> Measured | None:
    """Return the scores of a run, or None if it is not done or not tested."""
    state, rows = run.state(), run.metrics()[0]
    trained = scores(rows).get("trained")
    if state.state != "done" or trained is None or trained["map_at_r"] is None:
        return None
    steps, values = series(rows, "validation", "map_at_r")
    every = max(1, math.ceil(len(steps) / MOST_POINTS))
    kept = [i for i in range(len(steps)) if i % every == 0 or i == len(steps) - 1]
    main_scores = {"map_at_r": trained["map_at_r"], "recall_at_1": trained["recall_at"].get("1")}
    return Measured(
        variant=entry.variant,
        seed=entry.seed,
        digest=entry.digest(),
        scores={
            k: v
            for k, v in (main_scores | _foreground(run) | _further(rows) | best_step(rows) | _projections(rows)).items()
            if v is not None
        },
        validation=ValidationCurve(step=tuple(steps[i] for i in kept), map_at_r=tuple(values[i] for i in kept)),
        steps=state.step,
        seconds=state.seconds,
        device=state.device,
        run=run.id,
        fold=entry.fold,
        candidate=entry.candidate,
        best_step=trained["step"],
        validated=best_validation(rows),
        baselines=verdicts.baselines(rows, started=bool(run.spec.model.start)),
    )


def measured(entries: Sequence[StudyRun], store: RunStore) -> list[Measured]:
    """Return the scores of the finished runs for these entries.

    For a variant with candidates, only the runs of the chosen candidate are returned, and none until all candidates
    have a validation score. Test scores of the other candidates are not results.
    """
    pairs = zip(entries, find(entries, store), strict=True)
    return keep_chosen(entries, [result for entry, run in pairs if run and (result := measure(entry, run))])


def keep_chosen(entries: Sequence[StudyRun], runs: Sequence[Measured]) -> list[Measured]:
    """Return the runs without candidates, and those of the chosen candidates.

    The latter contain the validation scores of all candidates, on which alone the choice depends. If the test split was
    scored at each validation, they also contain the test score of the candidate that is best on it.
    """
    scores_of = collect_scores(entries, {run.digest: run.validated for run in runs})
    chosen = {variant: best(scores) for variant, scores in scores_of.items()}
    by_test = best_settings(runs)

    def chosen_run(run: Measured) -> Measured:
        scores = run.scores | by_test.get((run.variant, run.seed), {})
        return run.model_copy(update={"candidates": scores_of[run.variant], "scores": scores})

    return [
        chosen_run(run) if run.candidate else run
        for run in runs
        if not run.candidate or run.candidate == chosen.get(run.variant)
    ]


def best_folds(results: Iterable[Measured], *, started: bool = True) -> list[Measured]:
    """Return for each variant and seed the fold with the best validation score; runs without folds are unchanged.

    With `started=False`, folds in which no training step improved on the initial weights are left out.
    """
    best: dict[tuple[str, int], Measured] = {}
    for run in results:
        if run.fold and not started and run.best_step == 0:
            continue
        known = best.setdefault((run.variant, run.seed), run)
        if (run.validated or 0.0) > (known.validated or 0.0):
            best[run.variant, run.seed] = run
    return list(best.values())


def table(results: Iterable[Measured]) -> list[dict[str, Any]]:
    """Return one row per variant in order of appearance: "variant", "seeds", and (mean, deviation) per score.

    The deviation is the sample standard deviation (ddof=1), None for a single seed. Pretraining runs are left out. If a
    variant has candidates, "chosen" names the chosen one and the number of candidates.
    """
    by_variant: dict[str, list[Measured]] = {}
    for result in best_folds(results):
        if result.variant != PRETRAINING:
            by_variant.setdefault(result.variant, []).append(result)
    rows: list[dict[str, Any]] = []
    for variant, runs in by_variant.items():
        row: dict[str, Any] = {"variant": variant, "seeds": len(runs)}
        if runs[0].candidate:
            row["chosen"] = f"{runs[0].candidate} (of {len(runs[0].candidates)})"
        for name in dict.fromkeys(name for run in runs for name in run.scores):
            values = [run.scores[name] for run in runs if name in run.scores]
            row[name] = verdicts.mean_and_deviation(values)
        rows.append(row)
    return rows


def as_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format the rows of `table` for the terminal: MAP@R and R@1 in percent, other numbers unchanged."""
    words = [name for name in ("variant", "seeds", "chosen") if any(name in row for row in rows)]
    names = list(dict.fromkeys(name for row in rows for name in row if name not in words))
    lines = [[*words, *(TITLES.get(name, name) for name in names)]]
    lines += [
        [*(str(row.get(name, "")) for name in words), *(_cell(name, row.get(name)) for name in names)] for row in rows
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


TITLES = {
    "map_at_r": "MAP@R",
    "recall_at_1": "R@1",
    "foreground": "weight on the foreground",
    BY_STEP: "step by test",
    BY_STEP_AND_SETTING: "step and setting by test",
}


def results_path(name: str) -> Path:
    """Return the path of a study's results file: NAME.jsonl next to its TOML file."""
    return path_of(name).with_suffix(".jsonl")


def write(request: StudyRequest, store: RunStore, *, report: Callable[[str], object] = lambda _: None) -> Path:
    """Write the measured scores next to the study file and return the path; raise SpecError if no run is done.

    Also raises ThresholdError if the study has `fmr` and a run has no validation classes.
    """
    from dmlcore import data  # imports torch

    entries = request.entries()
    runs = measured(entries, store)
    if not any(run.variant != PRETRAINING for run in runs):
        raise SpecError(f"{request.study}: no finished run in {store.root}, so there are no results to write")
    if fmr := read(request.study).fmr:
        runs = threshold_scores.add(runs, store, fmr, report=report)
    notes: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        d = entry.spec.data
        if d.name not in notes:
            notes[d.name] = data.load(d.name, root=d.root, image_size=d.image_size, seed=entry.seed).notes
    trained = [run for run in find(entries, store) if run]
    results = StudyResults(
        study=path_of(request.study).stem,
        written=time.strftime("%Y-%m-%d", time.gmtime()),
        **describe_machine(trained),
        seconds=sum({run.id: run.state().seconds for run in trained}.values()),
        data=notes,
        overrides=request.overrides,
        runs=tuple(run.model_copy(update={"run": "", "classes": by_class(run, store)}) for run in runs),
        maps=maps_of(entries, store),
    )
    return save(results, results_path(request.study))


def by_class(run: Measured, store: RunStore) -> tuple[float, ...]:
    """Return the mean AP@R of each test class, by class, rounded to four digits; () if the run has no embeddings."""
    from dmlcore.inspection import neighbours  # imports torch

    if run.classes or not run.run:
        return run.classes
    try:
        source = store.open(run.run).embeddings()
        neighbour_table = neighbours.read(source) if source else None
    except (RunError, Unreadable):
        return ()
    if neighbour_table is None:
        return ()
    scored = ~np.isnan(neighbour_table.average_precision)
    labels, precision = neighbour_table.labels[scored], neighbour_table.average_precision[scored]
    counts = np.bincount(labels)
    means = np.bincount(labels, weights=precision)[counts > 0] / counts[counts > 0]
    return tuple(round(float(mean), 4) for mean in means)


def save(results: StudyResults, path: Path) -> Path:
    """Write results as JSON lines: a header, one line per run, and, if there are any, the weight maps as the last line.

    Run ids are left out, because they have no meaning in other stores.
    """
    head = results.model_dump(mode="json", exclude={"runs", "maps"})
    unused = {"run"}, {"run", "candidate", "candidates"}
    runs = (run.model_dump(mode="json", exclude=unused[not run.candidate]) for run in results.runs)
    maps = [{"maps": results.maps.model_dump(mode="json")}] if results.maps else []
    lines = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in [head, *runs, *maps])
    atomic_files.replace(path, lambda file: file.write(lines.encode()))
    return path


def load(name: str) -> StudyResults | None:
    """Return the written results of a study, or None if there are none; raise SpecError if the file is damaged."""
    path = results_path(name)
    if not path.exists():
        path = path.with_suffix(".results.json")  # written by an earlier release as a single JSON object
    return _loaded.get(str(path), lambda: _load(path))


_loaded: FileCache[StudyResults | None] = FileCache(64)


def _load(path: Path) -> StudyResults | None:
    try:
        text = path.read_text("utf-8")
        return StudyResults.model_validate(json.loads(text) if path.suffix == ".json" else _from_lines(text))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError) as error:
        raise SpecError(f"{path.name} cannot be read; write it again with --write: {error}") from None


def _from_lines(text: str) -> dict[str, Any]:
    head, *others = [json.loads(line) for line in text.split("\n") if line] or [{}]
    if not all(isinstance(line, dict) for line in (head, *others)):
        raise ValueError("each line must be a JSON object")
    maps = others.pop() if others and "maps" in others[-1] else {}
    return {**head, **maps, "runs": others}


def _foreground(run: Run) -> dict[str, float]:
    """Return the mean share of the pooling weight that falls on the foreground tile; {} if it was not measured."""
    path = weight_maps.path_of(run)
    if path is None:
        return {}
    share = float(weight_maps.read(path).foreground.mean())
    return {} if math.isnan(share) else {"foreground": share}


def _further(rows: Sequence[Row]) -> dict[str, float]:
    """Return the numbers in the last metrics row of each kind in FURTHER, as "kind.key" -> number."""
    last = {row["kind"]: row for row in rows if row.get("kind") in FURTHER}
    return {
        f"{kind}.{key}": float(value)
        for kind, row in last.items()
        for key, value in row.items()
        if (key in FURTHER[kind] if FURTHER[kind] else key not in ("kind", "step", "of"))
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
    }


def _projections(rows: Sequence[Row]) -> dict[str, float]:
    """Return the number of finished projections of a run and their mean length in steps; {} if none has finished."""
    ends = [row["step"] for row in rows if row.get("kind") == "projection"]
    return {"projections.finished": float(len(ends)), "projections.steps": ends[-1] / len(ends)} if ends else {}


def _cell(name: str, value: tuple[float, float | None] | None) -> str:
    if value is None:
        return "-"
    factor, digits, unit = (100, 2, " %") if name in TITLES else (1, 4, "")
    mean, deviation = value
    spread = "" if deviation is None else f" ± {factor * deviation:.{digits}f}"
    return f"{factor * mean:.{digits}f}{spread}{unit}"
