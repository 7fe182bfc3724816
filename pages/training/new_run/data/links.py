"""Shell command and Settings link that reproduce a data set and its split."""

from __future__ import annotations

import json

import numpy as np

from dmlcore import data
from dmlcore.data import Dataset
from dmlcore.spec import RunSpec, SpecError
from pages.shared.state.spec_link import BASES, linked, presets
from pages.training.new_run.data.service import DataKey, SplitSettings


def command(at: DataKey, cut: SplitSettings) -> str:
    """Return the shell command that writes the split defined by `at` and `cut` to a JSON file."""
    words = ["python -m dmlcore data split", at.name, f"--into {at.name}-split.json"]
    words += [f"--root {json.dumps(at.root)}"] if at.root else []
    words += [f"--split {cut.split}", f"--validation {cut.validation}"] if cut.split else []
    words += [f"--folds {cut.folds} --fold {cut.fold} --fold-order {cut.order}"] if cut.folds else []
    words += [f"--seed {at.seed}"] if at.seed else []
    return " ".join(words)


def link(at: DataKey, cut: SplitSettings, made: Dataset | None = None) -> dict[str, str]:
    """Return the URL query parameters that open the Settings page with this data set and split.

    Args:
        at: Cache key of the data set.
        cut: Settings of the split.
        made: The loaded data set, if available. The number of classes per batch is then limited to the number of
            classes with at least two training samples.
    """
    info = data.describe(at.name)
    own = next((name for name, spec in presets().items() if spec.data.name == at.name), None)
    changes = [f"data.name={at.name}"]
    if own is None and info.kind == "images":
        changes += [f"data.image_size={info.image_size}"] if info.resizes else []
    if own is None and info.kind == "tokens":
        changes += ["model.name=tokens"]
    if at.root and ";" not in at.root:
        changes += [f"data.root={json.dumps(at.root)}"]
    if cut.split:
        changes += [f"data.split={cut.split}", f"data.validation={cut.validation}"]
    if cut.folds:
        changes += [f"data.folds={cut.folds}", f"data.fold={cut.fold}", f"data.fold_order={cut.order}"]
        changes += [f"data.fold_seed={at.seed}"]
    changes += [f"seed={at.seed}"] if at.seed else []
    base = own or BASES[info.kind]
    if made is not None and 1 < (pairable := _pairable(made)) < presets()[base].batch.classes:
        changes += [f"batch.classes={pairable}"]
    return {"base": base, "set": ";".join(changes)}


def linked_spec(at: DataKey, cut: SplitSettings, made: Dataset | None = None) -> RunSpec | None:
    """Return the spec that `link` opens; None if it does not use exactly this data set and split."""
    try:
        spec = linked(link(at, cut, made))
    except SpecError:
        return None
    return spec if splits_like(spec, at, cut) else None


def _pairable(made: Dataset) -> int:
    """Return the number of classes with at least two training samples."""
    return int((np.unique(made.labels[made.splits["train"]], return_counts=True)[1] > 1).sum())


def splits_like(spec: RunSpec, at: DataKey, cut: SplitSettings) -> bool:
    """Return True if the run spec `spec` uses the data set, folder and seed of `at` and the split settings `cut`."""
    info, its = data.describe(at.name), spec.data
    if (its.name, its.root) != (at.name, at.root) or ((at.seed or not info.needs_files) and spec.seed != at.seed):
        return False
    if info.split == "own":
        return True
    folds = (its.folds, its.fold, its.fold_order) if its.folds else (0, 1, "contiguous")
    return (its.split or info.split, its.validation or info.validation, *folds) == (
        cut.split,
        cut.validation,
        cut.folds,
        cut.fold,
        cut.order,
    )
