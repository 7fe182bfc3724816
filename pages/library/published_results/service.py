"""Our results to compare with a published table: runs under its protocol, and the study that repeats the table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dmlcore.data import DataError
from dmlcore.experiments import protocols, studies
from dmlcore.experiments.protocols.expansion import PUBLISHED
from dmlcore.experiments.studies import Study, StudyRequest, StudyResults
from dmlcore.metrics import SCORES
from dmlcore.published.collection import SAME, PublishedRow, PublishedTable
from dmlcore.significance.transductive import mark_transductive
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import Run, RunError, RunStore, scores
from pages.shared.state.cache import cached, derived
from pages.shared.words import sentences as words
from pages.shared.words.titles import loss_title

DATASETS = {
    "cub": "CUB-200-2011",
    "cars": "Cars196",
    "sop": "SOP",
    "inshop": "In-shop",
    "flowers": "Flowers-102",
    "toy": "toy",
}
# name in printed tables -> our name
UNTRAINED = {"input space": "raw inputs", "initial feature space": "untrained network"}
NETWORKS = {"resnet50": "ResNet50", "bn_inception": "BN-Inception", "googlenet": "GoogLeNet"}
STUDIES = {"K-4.1": "toy-table"}
Scores = dict[str, tuple[float, float | None]]  # printed column -> mean and standard deviation in per cent


@dataclass(frozen=True)
class Ours:
    """Result of our own: the mean of runs that differ only in fold and seed, or a summary written by a protocol."""

    what: str
    spec: RunSpec
    count: int
    scores: Scores
    deviations: tuple[str, ...] = ()
    runs: tuple[str, ...] = field(default=())


def our_results(table: PublishedTable) -> list[Ours]:
    """Return our results to compare with a table: from the study that repeats it, and from runs under its protocol."""
    summaries = _study(table)
    if table.protocol:
        summaries += [*_summaries(table), *_runs(table)]
    return summaries


def baselines(table: PublishedTable) -> list[Ours]:
    """Return our scores of raw inputs and untrained networks for the columns of a table.

    `Ours.what` names the baseline.
    """
    prefix = "train." if table.split == "train" else ""
    rows = []
    name = STUDIES.get(table.key)
    if name and (results := studies.load(name)):
        rows += derived(_study_baselines, table, name, studies.read(name), results)
    tested = [run for run in of_protocol(table.protocol) if _fits(table, run.spec)] if table.protocol else []
    for subject, title in {"inputs": "raw inputs", "untrained": "network before its first step"}.items():
        members = [
            (run, _columns(table, protocols.results.flatten_scores(scored)))
            for run in tested
            if not prefix and (scored := scores(run.metrics()[0]).get(subject))
        ]
        if members:
            mean = _group(members)
            rows.append(Ours(f"{title}, {mean.count} runs", mean.spec, mean.count, mean.scores))
    return rows


def _study_baselines(table: PublishedTable, name: str, _study: Study, results: StudyResults) -> list[Ours]:
    """Return the scores of raw inputs and untrained networks from the study `name`, which repeats the table."""
    spec = StudyRequest(study=name, seeds=(0,)).entries()[0].spec
    rows = [(row, _own(table, row)) for row in studies.baseline_rows(results.runs)]
    return [Ours(f"{row['variant']}, {row['seeds']} seeds", spec, row["seeds"], own) for row, own in rows if own]


def _own(table: PublishedTable, row: Mapping[str, Any]) -> Scores:
    """Return the scores from a row of study results, keyed by the columns of a published table.

    The scores are those on the split that the table reports.
    """
    prefix = "train." if table.split == "train" else ""
    return _columns(table, {key.removeprefix(prefix): value for key, value in row.items() if key.startswith(prefix)})


def of_protocol(name: str) -> list[Run]:
    """Return the finished runs whose spec names the protocol `name`."""
    summaries = []
    for run in RunStore().find(lambda run_id, brief: brief.protocol == name):
        try:
            if run.state().state == "done":
                summaries.append(run)
        except RunError:  # deleted in the meantime
            continue
    return summaries


def deviations(spec: RunSpec) -> tuple[str, ...]:
    """Return the deviations of a run from its protocol, including a different number of training samples."""
    try:
        differences = protocols.deviations(spec)
    except SpecError as error:
        return (words.plain(error),)
    published = PUBLISHED.get(spec.data.name)
    if published and (here := _images(spec.data.model_dump_json(), spec)) not in (None, published[0]):
        differences = [f"training samples: {here:,}, the published scores are of {published[0]:,}", *differences]
    return tuple(map(words.plain, differences))


@cached(64)
def _images(key: str, _spec: RunSpec) -> int | None:
    """Return the number of training samples of a spec, or None if the data cannot be read.

    `key` is the cache key; the cache ignores `_spec`.
    """
    try:
        return protocols.images(_spec)
    except DataError:
        return None


def find_matching(row: PublishedRow, ours: Sequence[Ours]) -> Ours | None:
    """Return our first result that matches a printed row and does not deviate from the protocol, or None.

    Data, network, embedding size, loss and hyper-parameters must match. A row without a loss is matched by the name of
    its baseline.
    """
    for one in ours:
        model = one.spec.model
        is_its_data = row.dataset in ("", DATASETS.get(one.spec.data.name, one.spec.data.name))
        is_its_network = row.network in ("", NETWORKS.get(model.name)) and row.size in ("", f"{model.embedding_dim}D")
        if row.method in UNTRAINED:
            is_it = one.what.startswith(UNTRAINED[row.method])
        else:
            is_it = (row.loss, row.setting) == (one.spec.loss.name, setting(one)) and bool(row.loss)
        if is_it and is_its_data and is_its_network and not one.deviations:
            return one
    return None


def _fits(table: PublishedTable, spec: RunSpec) -> bool:
    """Return True if the table reports results for the data set and the network of `spec`.

    A table that names no data sets fits all data sets, and a table that names no networks fits all networks.
    """
    networks = {row.network for row in table.rows if row.network}
    other = spec.model.name in NETWORKS and networks and NETWORKS[spec.model.name] not in networks
    return not other and (not table.datasets or DATASETS.get(spec.data.name, spec.data.name) in table.datasets)


def _runs(table: PublishedTable) -> list[Ours]:
    groups: dict[str, list[tuple[Run, Scores]]] = {}
    for run in of_protocol(table.protocol):
        if _fits(table, run.spec) and (reached := _reached(run, table)):
            data = run.spec.data.model_copy(update={"fold": 1})
            key = run.spec.model_copy(update={"name": "", "seed": 0, "data": data}).digest()
            groups.setdefault(key, []).append((run, reached))
    return [_group(members) for members in groups.values()]


def _group(members: Sequence[tuple[Run, Scores]]) -> Ours:
    spec, count = members[0][0].spec, len(members)
    scores: Scores = {}
    for column in members[0][1]:
        values = [reached[column][0] for _, reached in members if column in reached]
        scores[column] = statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None
    what = mark_transductive(f"mean of {count} runs" if count > 1 else "one run", spec.conditioning.transductive)
    return Ours(what, spec, count, scores, deviations(spec), tuple(run.id for run, _ in members))


def _reached(run: Run, table: PublishedTable) -> Scores:
    """Return the scores of a run on the split that a published table reports, keyed by the table's columns."""
    rows = run.metrics()[0]
    if table.split == "train":
        train = [row for row in rows if row.get("kind") == "train"]
        return _columns(table, protocols.results.flatten_scores(train[-1])) if train else {}
    tested: Row | None = scores(rows).get("trained")
    return _columns(table, protocols.results.flatten_scores(tested)) if tested else {}


def _columns(table: PublishedTable, scores: Mapping[str, Any]) -> Scores:
    """Return scores in percent by the table's columns, from flattened scores in 0..1.

    A score is a number or a pair (mean, standard deviation).
    """
    result: Scores = {}
    for column in table.scores:
        value = scores.get(_name(column))
        if isinstance(value, (tuple, list)):
            result[column] = 100 * value[0], None if value[1] is None else 100 * value[1]
        elif isinstance(value, (int, float)):
            result[column] = 100 * value, None
    return result


def _name(column: str) -> str:
    """Return the key in metrics.jsonl for a printed column heading."""
    title = SAME.get(column, column)
    known = {entry.printed: name for name, entry in SCORES.items() if entry.printed}
    return known.get(title) or title.replace("R@", "recall_at_").replace("P@", "precision_at_")


def _summaries(table: PublishedTable) -> Iterable[Ours]:
    """Yield the summaries stored under the table's protocol, such as scores of the best folds.

    Means over runs are omitted, because they are computed from the runs themselves.
    """
    store = RunStore()
    for folder in sorted((store.root / ".protocols").glob(f"{table.protocol}-*")):
        results = protocols.load(folder)
        if results is None or results.protocol != table.protocol or not results.runs:
            continue
        try:
            spec = store.open(results.runs[0].run).spec
        except RunError:
            continue
        if not _fits(table, spec):
            continue
        for summary in results.summaries:
            of_train = "on the training" in summary.of
            reached = _columns(table, summary.scores)
            if reached and of_train == (table.split == "train") and not summary.of.startswith("mean of"):
                yield Ours(summary.of, spec, summary.count, reached, deviations(spec))


def _study(table: PublishedTable) -> list[Ours]:
    """Return our results for the variants of the study that repeats the table; [] if there is no such study.

    Standard deviations are over the study's seeds.
    """
    name = STUDIES.get(table.key)
    results = studies.load(name) if name else None
    if name is None or results is None:
        return []
    return list(derived(_variants, table, name, studies.read(name), results))


def _variants(table: PublishedTable, name: str, _study: Study, results: StudyResults) -> list[Ours]:
    specs = {entry.variant: entry.spec for entry in StudyRequest(study=name, seeds=(0,)).entries()}
    summaries = []
    for row in studies.table(results.runs):
        if row["variant"] in specs:
            spec = specs[row["variant"]]
            what = mark_transductive(f"study {name}, {row['seeds']} seeds", spec.conditioning.transductive)
            summaries.append(Ours(what, spec, row["seeds"], _own(table, row)))
    return summaries


def method(ours: Ours) -> str:
    """Return the title of the loss in one of our results."""
    return loss_title(ours.spec.loss.name)


def setting(ours: Ours) -> str:
    """Return the loss hyper-parameters of one of our results as text."""
    return ", ".join(
        f"{'ρ' if k == 'rho' else k}={v:g}" if isinstance(v, float) else f"{k}={v}"
        for k, v in ours.spec.loss.parameters.items()
    )
