"""Repetition of the training steps of a run, to measure the influence of each training sample.

Batches, dropout and miners are functions of (seed, step), so a step repeated from a kept checkpoint equals the original
step, bit for bit on the same machine. For a small network, or a head on frozen features, the whole run is repeated. For
other networks, some steps are repeated after each kept checkpoint and represent all steps up to the next checkpoint.
The tested weights are the best ones by validation, so later steps are not repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dmlcore.models import networks
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint, run_directory
from dmlcore.storage.checkpoint import Checkpoint
from dmlcore.storage.runs import Run, RunError
from dmlcore.storage.task import ProgressCallback
from dmlcore.typing import Floats, Ints

if TYPE_CHECKING:
    from torch import Tensor

    from dmlcore.training.state import TrainingState

MOST = 400  # default limit on the number of steps that are decomposed by sample


@dataclass(frozen=True)
class Stretch:
    """Consecutive training steps to repeat from one checkpoint.

    Args:
        start: Step of the checkpoint; the first repeated step is start + 1.
        checkpoint: File of the checkpoint; None to start from the seed.
        stop: Last repeated step.
        every: Interval between steps that are decomposed by sample; 1 if all are.
        weight: Number of steps of the run that one decomposed step represents.
    """

    start: int
    checkpoint: Path | None
    stop: int
    every: int
    weight: float

    @property
    def decomposed(self) -> int:
        """Number of steps that are decomposed by sample."""
        return -(-(self.stop - self.start) // self.every)


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence of the training samples on failures.

    Args:
        samples: Sample indices (n,) of the training split, ascending.
        influence: Change (F, n) in the margin of each of F failures due to each sample; 0 for samples in no decomposed
            step.
        steps: Number of decomposed steps.
        begin: Step from which the repetition started; the first examined step is begin + 1.
        end: Last step of the examined range, whose weights were tested.
    """

    samples: Ints
    influence: Floats
    steps: int
    begin: int
    end: int


def tested_step(saved: Checkpoint) -> int:
    """Return the step whose weights are tested: the best by validation, or the last one."""
    best = any(name.startswith("best.") for name in saved.tensors)
    return int(saved.facts["best_step"] if best else saved.facts["step"])


def stretches(run: Run, end: int, most: int = MOST) -> list[Stretch]:
    """Plan which training steps to repeat in order to explain the weights of step `end`.

    Args:
        run: Run with its checkpoints.
        end: Step of the tested weights.
        most: Approximate limit on the number of steps that are decomposed by sample.

    Raises:
        RunError: `end` is 0, so that the weights are the initial ones, or a fork kept no checkpoint before `end`.
    """
    if end <= 0:
        raise RunError(f"{run.id} was tested with its initial weights, so no training sample caused its failures")
    kept = {step: path for step, path in run_directory.kept_checkpoints(run.path).items() if step < end}
    if not kept and run.spec.fork.run:
        raise RunError(
            f"{run.id} is a fork without a kept checkpoint before the tested weights; train it again with "
            "schedule.keep_every"
        )
    if _is_cheap(run.spec) or not kept:
        start = min(kept, default=0)
        every = -(-(end - start) // most)
        return [Stretch(start, kept.get(start), end, every, every)]
    starts = list(kept)
    if len(starts) > most:
        starts = starts[:: -(-len(starts) // most)]
    planned = []
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        taken = min(stop - start, max(1, most * (stop - start) // (end - starts[0])))
        planned.append(Stretch(start, kept[start], start + taken, 1, (stop - start) / taken))
    return planned


def influence(
    run: Run,
    cases: Callable[[TrainingState], Tensor],
    *,
    most: int = MOST,
    tell: ProgressCallback = lambda words, done, total: None,
) -> Influence:
    """Compute the influence of each training sample on the margins of failures; the run itself is not changed.

    Args:
        run: Run whose steps are repeated.
        cases: Function that returns the argument `cases` (3 F, ...) of `of_step.step` for a training state.
        most: Approximate limit on the number of steps that are decomposed by sample.
        tell: Callback for progress.

    Raises:
        RunError: The run has no checkpoint to start from.
        CheckpointError: A checkpoint is damaged.
        DataError: The data set cannot be read.
        TrainingError: The steps cannot be decomposed or repeated.
    """
    from dmlcore.inspection.influence import of_step
    from dmlcore.training import loop
    from dmlcore.training.build import build, load_data, prepare_device

    saved = checkpoint.load(run.path)
    if saved is None:
        raise RunError(f"{run.id} has no checkpoint yet; train it first")
    end = tested_step(saved)
    planned = stretches(run, end, most)
    device = prepare_device(run.spec.device, int(saved.facts["threads"]))
    state = build(run.spec, load_data(run.spec), device, start=planned[0].checkpoint is None)
    of_step.refuse(state)
    inputs = cases(state)
    train = np.sort(state.data.splits["train"])
    sums = np.zeros((len(inputs) // 3, len(train)))
    total, done = sum(each.stop - each.start for each in planned), 0
    state.model.train()
    for each in planned:
        _begin(state, each)
        for number in range(each.start + 1, each.stop + 1):
            if (number - each.start - 1) % each.every:
                loop.step(state, number)
            else:
                of_one = of_step.step(state, number, inputs)
                sums[:, np.searchsorted(train, of_one.samples)] += each.weight * of_one.influence
            state.progress.step = number
            _validate(state)
            done += 1
            tell(f"step {number:,}", done, total)
    return Influence(train, sums, sum(each.decomposed for each in planned), planned[0].start, end)


def _is_cheap(spec: RunSpec) -> bool:
    """Return True for a small network or a frozen backbone, for which repeating all steps is cheap."""
    return spec.model.name in networks.TAKES or spec.model.freeze == "backbone"


def _begin(state: TrainingState, stretch: Stretch) -> None:
    """Restore the training state that the run had at the start of a stretch."""
    from dmlcore.training.state import restore

    if stretch.checkpoint is None:
        for method in state.methods:
            method.begin(state)
        _validate(state)
        return
    saved = checkpoint.read(stretch.checkpoint)
    restore(state, saved.tensors, saved.facts, fused=saved.facts.get("fused", False))


def _validate(state: TrainingState) -> None:
    """Validate if the run was validated at this step and its learning rate or projections depend on the result."""
    from dmlcore.training import evaluation

    schedule, number = state.spec.schedule, state.progress.step
    if not (schedule.plateau or state.spec.projection.pool):
        return
    if number % schedule.validate_every == 0 or number == schedule.steps:
        rows = evaluation.validate(state)
        for method in state.methods if number else ():
            method.after_step(state, rows)
