"""Specs of forks: runs that continue from a checkpoint of another run with other settings or another training split.

`transfer` defines which weights and other states are taken over from the parent. The step counter is always taken over,
so that both runs can be compared step by step.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from dmlcore.data import Dataset
from dmlcore.data.printable import LONGEST, printable
from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.sections import MAX_SAMPLES, ForkSpec
from dmlcore.storage import fork_parent
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.training import build
from dmlcore.training.forks import training_split, transfer

LONGEST_NAME = 80
LONGEST_NUMBER = 12  # maximum number of digits of a sample index


def fork_steps(run: Run) -> list[int]:
    """Return the steps from which a run can be forked, ascending: those of its kept checkpoints and its newest one."""
    return list(fork_parent.steps(run.path))


def create(
    parent: Run,
    step: int,
    changes: Iterable[str] | RunSpec = (),
    *,
    leave_out: Sequence[int] = (),
    without: Sequence[int] = (),
    relabel: Mapping[int, int] | None = None,
) -> RunSpec:
    """Return the spec of a fork of `parent` at `step` with changed settings.

    Changes to the training split are added to those of the parent.

    Args:
        parent: The run to fork.
        step: Step of the parent's checkpoint to start from.
        changes: Changed settings as key=value, as in `RunSpec.with_overrides`, or all settings of the fork;
            `schedule.steps` counts from the parent's first step.
        leave_out: Classes to leave out of training.
        without: Indices of samples to leave out of training.
        relabel: New class of each relabelled sample, by sample index.

    Raises:
        SpecError: If the step has no checkpoint, if a setting was changed that a fork cannot change, or if no training
            step remains.
    """
    there = fork_steps(parent)
    if step not in there:
        shown = ", ".join(map(str, there)) or "none yet"
        raise SpecError(f"fork.step: {parent.id} has no checkpoint of step {step}; available steps: {shown}")
    before = parent.spec
    spec = changes if isinstance(changes, RunSpec) else before.with_overrides(changes)
    pairs = dict(before.fork.relabel) | dict(relabel or {})
    fork = ForkSpec(
        run=parent.id,
        step=step,
        leave_out=tuple(sorted({*before.fork.leave_out, *leave_out})),
        leave_out_samples=_samples({*before.fork.leave_out_samples, *without}),
        relabel=tuple(sorted(pairs.items())),
    )
    if keys := transfer.refused_keys(before, spec):
        raise SpecError(
            f"{', '.join(keys)}: a fork continues with the weights of {parent.id}, so this cannot be changed"
        )
    if spec.schedule.steps <= step:
        raise SpecError(
            f"schedule.steps: must be greater than {step}, the step at which the fork starts, got "
            f"{spec.schedule.steps}; it counts from the first step of the parent"
        )
    if spec.name == before.name:
        spec = spec.model_copy(update={"name": f"{before.name or before.data.name} from {step}"[-LONGEST_NAME:]})
    return RunSpec.parse(spec.model_dump() | {"fork": fork.model_dump()})


def _samples(numbers: set[int]) -> tuple[int, ...]:
    if len(numbers) > MAX_SAMPLES:
        raise SpecError(
            f"fork.leave_out_samples: at most {MAX_SAMPLES:,} samples can be left out by number, got "
            f"{len(numbers):,}; leave out whole classes"
        )
    return tuple(sorted(numbers))


def check(spec: RunSpec, dataset: Dataset) -> None:
    """Raise TrainingError if the fork's split changes are invalid, or leave too few classes for a batch."""
    build.refuse_unusable(spec)
    left = training_split.edit_split(dataset, spec.fork)
    classes = len(np.unique(left.labels[left.splits["train"]]))
    if spec.batch.sampler == "balanced" and classes < spec.batch.classes:
        raise build.TrainingError(
            f"batch.classes: batches hold {spec.batch.classes} classes, but {classes} are left in the training split"
        )


def class_of(dataset: Dataset, text: str) -> int:
    """Return the number of the class with a given name or number; raise SpecError if no class matches.

    The name may be given as the data set stores it, or in the printable form in which it is displayed.
    """
    names = [number for number, name in enumerate(dataset.class_names) if name in (text, printable(text, LONGEST))]
    if len(names) == 1:
        return names[0]
    if text.isascii() and text.isdigit() and int(text) < len(dataset.class_names):
        return int(text)
    what = "the name of several classes; give a number" if names else "no class"
    near = difflib.get_close_matches(text, dataset.class_names, 3) if not names else []
    meant = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise SpecError(f"{text!r} is {what}; {meant}{dataset.name} has 0 to {len(dataset.class_names) - 1}")


def parse_samples(text: str) -> tuple[int, ...]:
    """Parse sample indices such as "12, 50 77"; return them sorted and unique. Raise SpecError for other text."""
    words = text.replace(",", " ").split()
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) <= LONGEST_NUMBER):
            raise SpecError(f"{word[:40]}: expected numbers of samples, for example 12, 50, 77")
    return tuple(sorted({int(word) for word in words}))


def parse_relabelling(dataset: Dataset, words: Iterable[str]) -> dict[int, int]:
    """Parse items such as "412=7" or "412=Blue Jay" to a mapping sample -> class; raise SpecError for other text."""
    labels = {}
    for word in words:
        sample, equals, label = word.partition("=")
        if not equals or not (sample.isascii() and sample.isdigit()):
            raise SpecError(f"{word}: expected SAMPLE=CLASS, for example 412=7")
        labels[int(sample)] = class_of(dataset, label)
    return labels


def parent_of(run: Run) -> Run | None:
    """Return the parent of a fork, or None if the run is not a fork or its parent was deleted."""
    with suppress(RunError):
        return RunStore(run.path.parent).open(run.spec.fork.run) if run.spec.fork.run else None
    return None


def children(run: Run) -> list[Run]:
    """Return the forks of a run, newest first."""
    return list(RunStore(run.path.parent).find(lambda run_id, brief: brief.parent == run.id))
