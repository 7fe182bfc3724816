"""Adaptation of a spec's settings to the number of classes in a user's own images or embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from dmlcore.cli.options import FOLDER, warn
from dmlcore.spec import RunSpec

# data sets whose classes are not known in advance: a folder of images and an embedding set
ADAPTED = (FOLDER, "embeddings")
# minimum number of classes for a test on unseen classes; with fewer, each split contains samples of all classes
MIN_CLASSES = 4
# overrides with which another network is trained from random initialisation, as the weights of the spec do not fit it
OF_BACKBONE = {
    "model.start": "model.start=",
    "model.freeze": "model.freeze=none",
    "model.embedding_start": "model.embedding_start=random",
}


def fit_to_folder(spec: RunSpec, overrides: Sequence[str]) -> RunSpec:
    """Return `spec` with `overrides` and, for data of the user's own, with split and batch adapted to their classes.

    The adapted settings are printed. Keys in `overrides` are not adapted. Raises SpecError, DataError.
    """
    chosen = spec.with_overrides(overrides)
    if chosen.data.name not in ADAPTED or spec.data.name != chosen.data.name or chosen.data.root is None:
        return chosen
    given = {override.partition("=")[0].strip() for override in overrides}
    if "model.name" in given and not given & set(OF_BACKBONE):
        chosen = spec.with_overrides([*OF_BACKBONE.values(), *overrides])
        spec = spec.with_overrides(OF_BACKBONE.values())
    changes = [change for change in _changes(chosen, given) if change.partition("=")[0] not in given]
    if changes:
        warn(f"settings adapted to {chosen.data.root}: {' '.join(changes)}")
    return spec.with_overrides([*changes, *overrides])


def _changes(spec: RunSpec, given: set[str]) -> list[str]:
    """Return overrides that adapt a spec to a user's own data; `given` holds the keys set by the user.

    With fewer than MIN_CLASSES training classes or fewer than two test classes, the test and validation splits consist
    of samples instead of classes. A batch contains at most as many classes as have two or more training samples.
    """
    import numpy as np

    from dmlcore import data

    d = spec.data
    samples = data.read(d.name, root=d.root, image_size=d.image_size, seed=spec.seed)
    for note in samples.notes:
        warn(f"note: {note}")
    changes: list[str] = []
    split, validation = d.split, d.validation
    few = min(samples.train_classes, len(samples.class_names) - samples.train_classes + 2) < MIN_CLASSES
    if few and not given & {"data.split", "data.validation", "data.folds"}:
        split = validation = "samples"
        changes += ["data.split=samples", "data.validation=samples"]
    folds = data.Folds(d.folds, d.fold, d.fold_order, d.fold_seed) if d.folds else None
    made = data.divide(d.name, samples, split=split, validation=validation, folds=folds, seed=spec.seed)
    pairable = int((np.unique(made.labels[made.splits["train"]], return_counts=True)[1] > 1).sum())
    if spec.batch.sampler == "balanced" and 2 <= pairable < spec.batch.classes:
        changes += [f"batch.classes={pairable}"]
    return changes
