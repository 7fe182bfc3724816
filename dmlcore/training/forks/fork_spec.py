"""A fork of a run: from one of its checkpoints another future, with other settings or another training split.

`transfer` says what of the parent goes on; the clock does, so that both futures are compared step by step.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from dmlcore.data import Dataset
from dmlcore.data.printable import LONGEST, printable
from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.sections import MOST_SAMPLES, ForkSpec
from dmlcore.storage import fork_parent
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.training import build
from dmlcore.training.forks import training_split, transfer

LONGEST_NAME = 80
LONGEST_NUMBER = 12  # digits


def steps(run: Run) -> list[int]:
    """Steps from which a run can be forked, ascending: those whose checkpoints are kept, and the last ones."""
    return list(fork_parent.steps(run.path))


def make(
    parent: Run,
    step: int,
    changes: Iterable[str] = (),
    *,
    leave_out: Sequence[int] = (),
    without: Sequence[int] = (),
    relabel: Mapping[int, int] | None = None,
) -> RunSpec:
    """The spec of a fork of `parent` at `step`; changes: key=value as of `RunSpec.with_overrides`, the rest as `of`."""
    return of(parent, step, parent.spec.with_overrides(changes), leave_out=leave_out, without=without, relabel=relabel)


def of(
    parent: Run,
    step: int,
    spec: RunSpec,
    *,
    leave_out: Sequence[int] = (),
    without: Sequence[int] = (),
    relabel: Mapping[int, int] | None = None,
) -> RunSpec:
    """The spec of a fork of `parent` at `step` that goes on as `spec` says.

    schedule.steps counts from the parent's first step. leave_out: classes; without: samples; relabel: sample -> class;
    all beside what the parent has already changed. Raises SpecError for a step without a checkpoint, for what a fork
    cannot change, and if no step would be left to make.
    """
    there = steps(parent)
    if step not in there:
        shown = ", ".join(map(str, there)) or "none yet"
        raise SpecError(f"fork.step: {parent.id} has no checkpoint of step {step}; there are: {shown}")
    before = parent.spec
    pairs = dict(before.fork.relabel) | dict(relabel or {})
    fork = ForkSpec(
        run=parent.id,
        step=step,
        leave_out=tuple(sorted({*before.fork.leave_out, *leave_out})),
        leave_out_samples=_samples({*before.fork.leave_out_samples, *without}),
        relabel=tuple(sorted(pairs.items())),
    )
    if keys := transfer.refused(before, spec):
        raise SpecError(f"{', '.join(keys)}: a fork goes on with the weights of {parent.id}, so this cannot be changed")
    if spec.schedule.steps <= step:
        raise SpecError(
            f"schedule.steps: the fork begins at step {step}, so it must be more than that, got {spec.schedule.steps}; "
            "it counts from the first step of the parent"
        )
    if spec.name == before.name:
        spec = spec.model_copy(update={"name": f"{before.name or before.data.name} from {step}"[-LONGEST_NAME:]})
    return RunSpec.parse(spec.model_dump() | {"fork": fork.model_dump()})


def _samples(numbers: set[int]) -> tuple[int, ...]:
    if len(numbers) > MOST_SAMPLES:
        raise SpecError(
            f"fork.leave_out_samples: at most {MOST_SAMPLES:,} samples can be left out by number, got "
            f"{len(numbers):,}; leave out whole classes"
        )
    return tuple(sorted(numbers))


def check(spec: RunSpec, dataset: Dataset) -> None:
    """Raise TrainingError if the training split cannot be changed like this, or has too few classes for a batch."""
    build.refuse_unusable(spec)
    left = training_split.edited(dataset, spec.fork)
    classes = len(np.unique(left.labels[left.splits["train"]]))
    if spec.batch.sampler == "balanced" and classes < spec.batch.classes:
        raise build.TrainingError(
            f"batch.classes: batches hold {spec.batch.classes} classes, but {classes} are left in the training split"
        )


def class_of(dataset: Dataset, text: str) -> int:
    """Return the number of a class given by its name or number; raises SpecError.

    The name is that of the data set, or of its folder where that is not printable.
    """
    names = [number for number, name in enumerate(dataset.class_names) if name in (text, printable(text, LONGEST))]
    if len(names) == 1:
        return names[0]
    if text.isascii() and text.isdigit() and int(text) < len(dataset.class_names):
        return int(text)
    what = "the name of several classes; give its number" if names else "no class"
    near = difflib.get_close_matches(text, dataset.class_names, 3) if not names else []
    meant = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise SpecError(f"{text!r} is {what}; {meant}{dataset.name} has 0 to {len(dataset.class_names) - 1}")


def numbers(text: str) -> tuple[int, ...]:
    """Samples of words like "12, 50 77", each once, ascending; raises SpecError."""
    words = text.replace(",", " ").split()
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) <= LONGEST_NUMBER):
            raise SpecError(f"{word[:40]}: expected numbers of samples, for example 12, 50, 77")
    return tuple(sorted({int(word) for word in words}))


def relabelled(dataset: Dataset, words: Iterable[str]) -> dict[int, int]:
    """sample -> class of words like "412=7" or "412=Blue Jay"; raises SpecError."""
    labels = {}
    for word in words:
        sample, equals, label = word.partition("=")
        if not equals or not (sample.isascii() and sample.isdigit()):
            raise SpecError(f"{word}: expected SAMPLE=CLASS, for example 412=7")
        labels[int(sample)] = class_of(dataset, label)
    return labels


def parent_of(run: Run) -> Run | None:
    """The run that this one is a fork of, if it is still there."""
    with suppress(RunError):
        return RunStore(run.path.parent).open(run.spec.fork.run) if run.spec.fork.run else None
    return None


def children(run: Run) -> list[Run]:
    """The forks of a run, newest first."""
    return list(RunStore(run.path.parent).find(lambda run_id, brief: brief.parent == run.id))
