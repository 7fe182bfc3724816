"""Results of a protocol: scores of its runs, summarised as in the source and written as JSON."""

from __future__ import annotations

import hashlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from dmlcore.experiments.protocols.requests import ProtocolRequest
from dmlcore.experiments.protocols.spec import Protocol
from dmlcore.experiments.studies import PRETRAINING, StudyRun, find
from dmlcore.significance import verdicts
from dmlcore.significance.transductive import mark_transductive
from dmlcore.significance.verdicts import Verdict
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage import arrays, atomic_files
from dmlcore.storage.arrays import EMBEDDINGS, Unreadable
from dmlcore.storage.metrics_rows import UNTRAINED, Row
from dmlcore.storage.run_directory import embeddings_path
from dmlcore.storage.runs import Run, RunStore, scores
from dmlcore.typing import Singles

Spread = tuple[float, float | None]  # mean and sample standard deviation (ddof=1); None for a single value


class _ResultModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Member(_ResultModel):
    """A finished run: test scores of its best weights, and the validation score that selected them, all in 0..1."""

    fold: int  # 0: no folds
    seed: int
    run: str
    digest: str  # digest of its entry
    weights: str  # digest of the best weights; their embeddings file has this name
    validation: float | None
    scores: dict[str, float]
    train: dict[str, float] = {}
    # baseline ("pretrained" or a name in UNTRAINED) -> score name -> score
    baselines: dict[str, dict[str, float]] = {}
    steps: int
    seconds: float
    device: str


class Collection(_ResultModel):
    """Scores of a combination of one model per fold: the mean over the models, and those of the joined embeddings."""

    runs: tuple[str, ...]
    # digest of the test samples; "" in files of releases that compared only the count and labels of the samples
    tested_on: str = ""
    separated: dict[str, float]
    concatenated: dict[str, float]


class ScoreSummary(_ResultModel):
    """Mean and sample standard deviation (ddof=1) of each score over `count` runs or combinations, named by `of`."""

    of: str
    count: int
    scores: dict[str, Spread]


class ProtocolResults(_ResultModel):
    """Results of a protocol: the request, its runs, combinations of folds, summaries, and remarks for the reader."""

    protocol: str
    written: str  # date
    overrides: tuple[str, ...]
    deviations: tuple[str, ...]
    runs: tuple[Member, ...]
    missing: int
    collections: tuple[Collection, ...]
    summaries: tuple[ScoreSummary, ...]
    notes: tuple[str, ...]


def measure(entry: StudyRun, run: Run) -> Member | None:
    """Return the results of a run, or None if it is not done or not tested."""
    state, rows = run.state(), run.metrics()[0]
    tested = scores(rows).get("trained")
    if state.state != "done" or tested is None or tested["map_at_r"] is None:
        return None
    spec = entry.spec
    held_out = [
        row for row in rows if row.get("kind") == "validation" and row.get("part", "validation") == "validation"
    ]
    chose = [row for row in held_out if row["step"] == tested["step"]]
    train = [row for row in rows if row.get("kind") == "train" and row["step"] == tested["step"]]
    return Member(
        fold=spec.data.fold if spec.data.folds else 0,
        seed=entry.seed,
        run=run.id,
        digest=entry.digest(),
        weights=str(tested.get("weights", "")),
        validation=chose[-1].get(spec.schedule.monitor) if chose else None,
        scores=flatten_scores(tested),
        train=flatten_scores(train[-1]) if train else {},
        baselines={
            "pretrained" if subject == "untrained" and spec.model.start else subject: flatten_scores(row)
            for subject, row in scores(rows).items()
            if subject in UNTRAINED
        },
        steps=state.step,
        seconds=state.seconds,
        device=state.device,
    )


def flatten_scores(row: Row) -> dict[str, float]:
    """Return the scores of a metrics row as a flat dict with keys such as map_at_r and recall_at_1.

    Missing scores are left out.
    """
    flat: dict[str, Any] = {}
    for key, value in row.items():
        flat |= {f"{key}_{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}
    skipped = ("step", "queries", "skipped", "tested_on")
    return {k: float(v) for k, v in flat.items() if isinstance(v, (int, float)) and k not in skipped}


def collections(
    members: Sequence[Member], load: Callable[[Member], Mapping[str, Any]], ks: Sequence[int]
) -> list[Collection]:
    """Score every combination of one model per fold, r^f combinations for r repeats of f folds.

    Each combination has the mean score of its models ("separated") and the score of their concatenated unit embeddings,
    divided by the square root of their number so that the result has length 1 (Gurbuz 2022, Sec. 3.3). If the repeats
    have different test samples, because the data set is generated from the seed, only models of the same repeat are
    combined.

    Args:
        members: The finished runs.
        load: Function that returns the embeddings file of a run, with the identities of its samples as "content".
        ks: Values of K for Recall@K.

    Raises:
        SpecError: If the test samples differ between models of the same repeat.
    """
    scored = []
    choices, files = _choices(members, load)
    for chosen in choices:
        together = np.hstack([files[member.run]["unit"] for member in chosen]) / np.sqrt(len(chosen))
        scored.append(
            Collection(
                runs=tuple(member.run for member in chosen),
                tested_on=hashlib.sha256(files[chosen[0].run]["content"].tobytes()).hexdigest(),
                separated={k: statistics.fmean(m.scores[k] for m in chosen) for k in _common(chosen)},
                concatenated=_scored(together, files[chosen[0].run], ks),
            )
        )
    return scored


def _choices(
    members: Sequence[Member], load: Callable[[Member], Mapping[str, Any]]
) -> tuple[list[tuple[Member, ...]], dict[str, dict[str, Any]]]:
    """Return the combinations of models, and the arrays of each run by run id; "unit" holds normalised embeddings."""
    by_fold = _grouped(sorted(members, key=lambda m: (m.fold, m.seed)), lambda m: m.fold)
    files: dict[str, dict[str, Any]] = {}
    for member in members:
        arrays = dict(load(member))
        embeddings = arrays["embeddings"].astype(np.float32)
        lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
        files[member.run] = arrays | {"unit": embeddings / np.maximum(lengths, np.finfo(np.float32).tiny)}
    every = list(itertools.product(*by_fold))
    alike = [chosen for chosen in every if _same_test(files[m.run] for m in chosen)]
    if len(alike) < len(every):
        alike = [chosen for chosen in alike if len({m.seed for m in chosen}) == 1]
    if every and not alike:
        raise SpecError("the folds were not tested on the same samples, so their embeddings cannot be concatenated")
    return alike, files


def _same_test(files: Iterable[Mapping[str, Any]]) -> bool:
    first, *others = files
    keys = ("labels", "indices", "content", "is_gallery")
    return all(
        (key in first) == (key in other) and (key not in first or np.array_equal(first[key], other[key]))
        for other in others
        for key in keys
    )


def _scored(embeddings: Singles, arrays: Mapping[str, Any], ks: Sequence[int]) -> dict[str, float]:
    from dmlcore.metrics import retrieval
    from dmlcore.training.evaluation import row  # imported here because it imports torch

    labels, searched = arrays["labels"], arrays.get("is_gallery")
    gallery: dict[str, Any] = {}
    if searched is not None:
        gallery = {"gallery": embeddings[searched], "gallery_labels": labels[searched]}
        embeddings, labels = embeddings[~searched], labels[~searched]
    return flatten_scores(row("together", 0, retrieval(embeddings, labels, **gallery, ks=ks)))


def summarise(
    protocol: Protocol, spec: RunSpec, members: Sequence[Member], together: Sequence[Collection]
) -> list[ScoreSummary]:
    """Return the summaries listed in `protocol.report`, in that order; omit those for which runs are missing."""
    summaries: list[ScoreSummary] = []
    for report in protocol.report:
        if report == "mean" and members:
            summaries += _of_members(_of_runs(members), members)
        elif report == "best_of_folds":
            folds = {m.fold for m in members}
            whole = [
                chosen for chosen in _grouped(members, lambda m: m.seed) if len(chosen) == len(folds) == spec.data.folds
            ]
            best = [max(chosen, key=_validation) for chosen in whole if all(m.validation is not None for m in chosen)]
            if best:
                which = f" (fold {best[0].fold})" if len(best) == 1 else f", {len(best)} repeats"
                summaries += _of_members(f"best of {spec.data.folds} folds by validation{which}", best)
        elif report == "best_of_repeats" and members:
            monitor = spec.schedule.monitor
            best_run = max(members, key=lambda m: m.scores.get(monitor, -1.0))
            words = {"recall_at_1": "R@1", "map_at_r": "MAP@R"}[monitor]
            summaries.append(_summary(f"best of {len(members)} repeats by TEST {words}", [best_run.scores]))
        elif report == "collections" and together:
            size, folds_ = spec.model.embedding_dim, len(together[0].runs)
            summaries.append(_summary(f"separated, {size}-D, mean of {folds_} models", [c.separated for c in together]))
            summaries.append(_summary(f"concatenated, {size * folds_}-D", [c.concatenated for c in together]))
    mark = spec.conditioning.transductive
    return [summary.model_copy(update={"of": mark_transductive(summary.of, mark)}) for summary in summaries]


def collect(
    request: ProtocolRequest,
    entries: Sequence[StudyRun],
    store: RunStore,
    *,
    before: ProtocolResults | None = None,
    report: Callable[[str], object] = lambda _: None,
) -> ProtocolResults:
    """Read the finished runs of a request and return their results with summaries.

    Args:
        request: The request.
        entries: Runs of the request.
        store: The run store.
        before: Earlier results; combinations of folds that they contain are not scored again.
        report: Callback for progress messages.
    """
    protocol = request.read()
    wanted = [entry for entry in entries if entry.variant != PRETRAINING]
    pairs = zip(entries, find(entries, store), strict=True)
    members = [m for e, run in pairs if run and e.variant != PRETRAINING and (m := measure(e, run))]
    spec, notes = wanted[0].spec, list(_notes(wanted, members))
    together: list[Collection] = []
    folds = {entry.spec.data.fold for entry in wanted}
    if "collections" in protocol.report and len(folds) > 1 and {m.fold for m in members} == folds:
        known = {c.runs: c for c in before.collections if c.tested_on} if before else {}
        if set(known) and {run for runs in known for run in runs} == {m.run for m in members}:
            together = list(known.values())
        else:
            report(f"scoring collections of {len(folds)} models each, concatenated")
            together = collections(members, lambda m: _embeddings(store, m), spec.ks)
        if len(together) > 1 and len(together) * len(folds) == len(members):
            notes.append("the repeats have different test samples, so only models of one repeat are concatenated")
    return ProtocolResults(
        protocol=request.name,
        written=time.strftime("%Y-%m-%d", time.gmtime()),
        overrides=request.overrides,
        deviations=tuple(request.deviations()),
        runs=tuple(members),
        missing=len(wanted) - len(members),
        collections=tuple(together),
        summaries=tuple(summarise(protocol, spec, members, together)),
        notes=tuple(notes),
    )


def write(results: ProtocolResults, path: Path) -> Path:
    """Write the results to `results.json` in a folder, and return the path of the file."""
    path.mkdir(parents=True, exist_ok=True)
    atomic_files.replace_json(path / "results.json", results.model_dump(mode="json"))
    return path / "results.json"


def load(path: Path) -> ProtocolResults | None:
    """Return the results stored in a folder, or None if there is no readable `results.json`."""
    try:
        return ProtocolResults.model_validate(atomic_files.read_json(path / "results.json"))
    except (OSError, ValueError, ValidationError):
        return None


def baselines(results: ProtocolResults) -> list[ScoreSummary]:
    """Return a summary of each baseline on the test samples of the runs: mean and deviation over the runs."""
    summaries = []
    for subject, words in verdicts.NAMES.items():
        if rows := [member.baselines[subject] for member in results.runs if subject in member.baselines]:
            summaries.append(_summary(words.removeprefix("the "), rows))
    return summaries


def verdict(results: ProtocolResults, score: str = "map_at_r") -> Verdict:
    """Compare the mean score of the runs with the mean scores of their baselines and return the verdict.

    The noise is estimated over the seeds, not over the folds, because folds share training classes.
    """
    values: dict[int, list[float]] = {}
    against: dict[str, dict[int, list[float]]] = {}
    for member in results.runs:
        if score in member.scores:
            values.setdefault(member.seed, []).append(member.scores[score])
            for subject, row in member.baselines.items():
                if score in row:
                    against.setdefault(subject, {}).setdefault(member.seed, []).append(row[score])

    def means(by_seed: Mapping[int, Sequence[float]]) -> dict[int, float]:
        return {seed: statistics.fmean(scores) for seed, scores in by_seed.items()}

    references = {subject: {"The mean of the runs": means(by_seed)} for subject, by_seed in against.items()}
    return verdicts.verdict({"The mean of the runs": means(values)}, references, measure="test MAP@R")


def _embeddings(store: RunStore, member: Member) -> Mapping[str, Any]:
    path = embeddings_path(store.open(member.run).path, member.weights)
    if not path.is_file():
        raise SpecError(f"{member.run} has no embeddings of its best weights; python -m dmlcore evaluate {member.run}")
    wanted = ("embeddings", "labels", "indices", "content", "is_gallery")
    try:
        stored = arrays.read(path, EMBEDDINGS, *wanted, remedy=f"Run python -m dmlcore evaluate {member.run}")
    except Unreadable as error:
        raise SpecError(str(error)) from None
    # an earlier release did not store the identities of the samples, so compute them from the data set
    if "content" not in stored:
        from dmlcore.data.identities import identities
        from dmlcore.training.build import load_data

        stored["content"] = identities(load_data(store.open(member.run).spec), stored["indices"]).astype(np.int64)
    return stored


def _notes(wanted: Sequence[StudyRun], members: Sequence[Member]) -> Iterable[str]:
    if missing := len(wanted) - len(members):
        yield f"{missing} of {len(wanted)} runs are not finished"
    if wanted[0].spec.schedule.monitor_part == "test":
        yield "weights are selected on the test split, as in the source, so these scores are too high"


def _of_members(subject: str, members: Sequence[Member]) -> Iterable[ScoreSummary]:
    yield _summary(subject, [m.scores for m in members])
    if all(m.train for m in members):
        yield _summary("the same, on the training split", [m.train for m in members])


def _summary(subject: str, scores: Sequence[Mapping[str, float]]) -> ScoreSummary:
    names = [name for name in scores[0] if all(name in each for each in scores)]
    return ScoreSummary(
        of=subject,
        count=len(scores),
        scores={name: verdicts.mean_and_deviation(each[name] for each in scores) for name in names},
    )


def _of_runs(members: Sequence[Member]) -> str:
    folds, seeds = len({m.fold for m in members}), len({m.seed for m in members})
    words = [f"{folds} folds" if folds > 1 else "", f"{seeds} repeats" if seeds > 1 else ""]
    return "mean of " + (" x ".join(word for word in words if word) or "one run")


def _grouped(members: Iterable[Member], by: Callable[[Member], int]) -> list[list[Member]]:
    groups: dict[int, list[Member]] = {}
    for member in members:
        groups.setdefault(by(member), []).append(member)
    return list(groups.values())


def _validation(member: Member) -> float:
    return -1.0 if member.validation is None else member.validation


def _common(members: Sequence[Member]) -> list[str]:
    return [name for name in members[0].scores if all(name in m.scores for m in members)]
