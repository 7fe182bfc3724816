"""Leave-out test of influence: training without the samples named as harmful, compared with random samples.

A run is trained, and some of its failed queries are drawn. For each failure, three forks are trained from step 0, each
without one per cent of the training samples. The first leaves out the samples that influence names as most harmful to
the failure, the second random samples, and the third those named as most helpful. The result is the new rank of the
failure's incorrect neighbour, which was nearest in the original run; a higher rank is farther away. The batches of all
three forks differ from those of the original run; the fork without random samples shows the effect of this difference
alone.

`python -m benchmarks.influence [KEY=VALUE ...]`; `--spec` selects a shipped spec.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from scipy import stats

from benchmarks.harness import command_line, machine
from dmlcore.data import Dataset
from dmlcore.inspection import neighbours
from dmlcore.inspection.failure.one_step import RetrievalFailure, failures
from dmlcore.inspection.failure.one_step import neighbours as neighbours_of
from dmlcore.inspection.influence.failure import Triplet, count_listed, most_harmful, of_failures
from dmlcore.presets import SPECS
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training.build import load_data
from dmlcore.training.forks import fork_spec
from dmlcore.training.loop import train
from dmlcore.typing import Floats

ARMS = ("named as harmful", "random", "named as helpful")
FIXED = ("data.validation=none", "schedule.patience=0", "schedule.measure_every=1000000")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--spec", default="digits-classes", help="name of a shipped spec")
    parser.add_argument("--failures", type=int, default=30)
    parser.add_argument("--steps-apart", type=int, default=400, help="number of training steps to analyse")
    arguments = parser.parse_args()
    spec = RunSpec.from_toml((SPECS / f"{arguments.spec}.toml").read_text())
    spec = spec.with_overrides([*arguments.overrides, *FIXED])
    rare = [f"schedule.{key}={spec.schedule.steps}" for key in ("validate_every", "checkpoint_every")]
    spec = spec.with_overrides(rare)
    print(machine("torch"), flush=True)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        _compare(RunStore(Path(folder)), spec, load_data(spec), arguments)


def _compare(store: RunStore, spec: RunSpec, data: Dataset, arguments: argparse.Namespace) -> None:
    began = time.process_time()
    parent = _trained(store, spec, data)
    of_training = time.process_time() - began
    triplets, count = drawn(parent, arguments.failures)
    began = time.process_time()
    whole = of_failures(parent, triplets, most=arguments.steps_apart)
    of_influence = time.process_time() - began
    size, steps = count_listed(len(whole.samples)), spec.schedule.steps
    print(
        f"{spec.name}, seed {spec.seed}: {len(triplets)} of {count} failures, {whole.steps} of {steps} steps "
        f"analysed, {size} of {len(whole.samples)} training samples left out; training {of_training:.0f} s, influence "
        f"{of_influence:.0f} s of processor time",
        flush=True,
    )
    before = np.array([standing(parent, triplet) for triplet in triplets])
    after = np.empty((len(ARMS), *before.shape))
    predicted = np.empty((len(ARMS), len(triplets)))
    random = np.random.default_rng(spec.seed)
    for row, (triplet, values) in enumerate(zip(triplets, whole.influence, strict=True)):
        places = (
            most_harmful(values, size),
            random.choice(len(values), size, replace=False),
            most_harmful(-values, size),
        )
        for arm, chosen in enumerate(places):
            predicted[arm, row] = -values[chosen].sum()
            after[arm, row] = standing(_without(store, parent, data, whole.samples[chosen].tolist()), triplet)
    report(before, after, predicted)


def drawn(run: Run, count: int) -> tuple[list[Triplet], int]:
    """Draw up to `count` random failures of a run; return them and the total number of failures.

    A failure is given by the indices of three samples: the query, its nearest correct and its nearest incorrect
    neighbour.
    """
    source = run.embeddings()
    assert source is not None
    test = neighbours.read(source)
    rows = [row for row in failures(test) if test.failures[row]]
    chosen = np.random.default_rng(run.spec.seed).permutation(rows)[:count]
    triplets: list[Triplet] = []
    for query in chosen.tolist():
        right, wrong = (neighbours_of(test, query, right=side)[0] for side in (True, False))
        triplets.append((int(test.indices[query]), int(test.indices[right]), int(test.indices[wrong])))
    return triplets, len(rows)


def standing(run: Run, triplet: Triplet) -> tuple[float, float]:
    """Return the rank of the incorrect neighbour and the margin d(query, incorrect) - d(query, correct) in a run."""
    source = run.embeddings()
    assert source is not None
    test = neighbours.read(source)
    rows = [row for row in (test.row(str(index)) for index in triplet) if row is not None]
    case = RetrievalFailure(test, *rows, on_sphere=run.spec.model.normalize)
    query, right, wrong = case.points
    return case.before.wrong, float(np.linalg.norm(query - wrong) - np.linalg.norm(query - right))


def report(before: Floats, after: Floats, predicted: Floats) -> None:
    """Print one line for each choice of left-out samples, and paired tests against leaving out random samples.

    Args:
        before: Rank and margin of each failure in the original run, shape (failures, 2).
        after: Rank and margin in the forks, shape (3, failures, 2).
        predicted: Predicted change in the margin, shape (3, failures).
    """
    ranks, margins = after[..., 0], after[..., 1] - before[:, 1]
    print("left out            N farther than before  rank of N: median, mean   change of margin")
    for arm, name in enumerate(ARMS):
        farther = int((ranks[arm] > before[:, 0]).sum())
        shown = f"{np.median(ranks[arm]):12.1f} {ranks[arm].mean():7.1f}"
        print(f"{name:18}  {farther:5d} of {len(before):3d} ({np.mean(ranks[arm] > before[:, 0]):5.1%})", end="")
        print(f"      {shown}     {margins[arm].mean():+8.4f} ± {stats.sem(margins[arm]):.4f}")
    for arm in (0, 2):
        print(f"{ARMS[arm]} against random: {against(ranks[arm], ranks[1])} by rank of N;", end=" ")
        print(f"{against(margins[arm], margins[1])} by margin;", end=" ")
        farther, beside = (ranks[each] > before[:, 0] for each in (arm, 1))
        alone, other = int((farther & ~beside).sum()), int((beside & ~farther).sum())
        p = stats.binomtest(alone, alone + other).pvalue if alone + other else 1.0
        print(f"N farther than before only there {alone}, only with random {other}, p = {p:.2g}", flush=True)
    named_arms = [0, 2]
    relation = stats.spearmanr(predicted[named_arms].ravel(), margins[named_arms].ravel())
    print(f"predicted and real change of the margin, both named arms: Spearman {relation.statistic:+.2f}")


def against(values: Floats, random: Floats) -> str:
    """Format how often `values` are above or below `random`, with the p-value of Wilcoxon's signed-rank test."""
    higher, lower = int((values > random).sum()), int((values < random).sum())
    p = stats.wilcoxon(values, random).pvalue if higher + lower else 1.0
    return f"{higher} higher, {lower} lower, p = {p:.2g}"


def _trained(store: RunStore, spec: RunSpec, data: Dataset) -> Run:
    run = store.create(spec.with_overrides([f"schedule.keep_every={spec.schedule.steps}"]))
    return _finished(run, data)


def _without(store: RunStore, parent: Run, data: Dataset, samples: Sequence[int]) -> Run:
    return _finished(store.create(fork_spec.create(parent, 0, without=samples)), data)


def _finished(run: Run, data: Dataset) -> Run:
    with run.lock():
        state = train(run, dataset=data)
    if state.state != "done":
        raise SystemExit(state.message)
    return run


if __name__ == "__main__":
    main()
