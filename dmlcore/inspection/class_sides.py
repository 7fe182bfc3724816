"""Embeddings of seen and of unseen classes of a run, between which a threshold is transferred.

A threshold is chosen on seen classes and measured on unseen ones. For a run, the seen classes are the validation
classes, which are not trained on but choose the weights, and the unseen ones are the test classes. The embeddings of
the validation split are computed with the best weights and cached in embeddings/DIGEST.validation.npz next to the test
embeddings, embeddings/DIGEST.npz. For comparison, the threshold can be chosen on training classes, as is often done.

An embedding set has no network. Its split column, if there is one, names the classes: those of the validation rows are
seen, or all but those of the test rows if fewer than two classes have validation rows only; those of the test rows are
unseen. Without such a column, the first half of the classes is seen and the second half unseen, as for a network that
is trained on the set.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from dmlcore import data, metrics
from dmlcore.data import Dataset
from dmlcore.data.embedding_sets import roles, stored
from dmlcore.metrics import Opis, Verification
from dmlcore.spec import RunSpec
from dmlcore.storage import arrays, checkpoint, run_directory
from dmlcore.storage.arrays import EMBEDDINGS, Unreadable
from dmlcore.storage.runs import Run
from dmlcore.training import build, evaluation, feature_baselines, starts
from dmlcore.training.batches import rows_of
from dmlcore.training.state import embedder, use_best
from dmlcore.typing import Bools, Ints, Singles

MAX_SAMPLES = 2**16  # maximum number of samples of a side, with 2e9 pairs; beyond, whole classes are drawn at random
SEED = 0  # of the classes that are drawn
AGAIN = "Evaluate the run again"
Load = Callable[[RunSpec], Dataset]
Seen = Literal["validation", "train"]
NAMES: dict[Seen, str] = {"validation": "validation classes", "train": "training classes"}
log = logging.getLogger(__name__)


class ThresholdError(ValueError):
    """Error for a run from which no threshold can be chosen; the message gives the reason and the remedy."""


@dataclass(frozen=True, eq=False)
class Side:
    """Embeddings of some classes.

    Attributes:
        name: Description of the classes, such as "validation classes".
        embeddings: Shape (n, D).
        labels: Class labels, shape (n,).
        indices: Sample indices in the data set, shape (n,).
    """

    name: str
    embeddings: Singles
    labels: Ints
    indices: Ints

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(np.unique(self.labels))

    @cached_property
    def pairs(self) -> Verification:
        """Rates of all pairs by cosine similarity; raises ValueError if there is no pair of the same class."""
        return metrics.verification(self.embeddings, self.labels)

    @cached_property
    def opis(self) -> Opis:
        """Rates of each class, and their inequality."""
        return metrics.opis(self.embeddings, self.labels, curve=self.pairs)


@dataclass(frozen=True, eq=False)
class ClassSides:
    """Seen and unseen classes.

    Attributes:
        seen: Classes on which a threshold is chosen.
        unseen: Classes on which it is measured; no class is on both sides.
        note: Sentence about the choice of the classes, or "".
    """

    seen: Side
    unseen: Side
    note: str = ""


def sides(run: Run, *, seen: Seen = "validation", load: Load | None = None) -> ClassSides:
    """Return the embeddings of the seen and of the unseen classes of a run or of an embedding set.

    Samples of a separate gallery are included. From a side of more than MAX_SAMPLES samples, whole classes are drawn at
    random, the same in each call.

    Args:
        run: Evaluated run, or embedding set.
        seen: Split of a run whose classes are the seen ones. A threshold chosen on "train" promises too much.
        load: Function that reads the data set of a spec, by default `dmlcore.training.build.load_data`. The data set is
            read only if the embeddings of the seen classes are not cached.

    Raises:
        ThresholdError: The run has no validation classes, its test classes are not unseen, it has not been evaluated
            since its last step, or the embedding set has no labels or fewer than two classes on a side.
        Unreadable: The file of the test embeddings is damaged.
        DataError, CheckpointError: Data set or checkpoint cannot be read.
    """
    if run.is_embedding_set:
        return _sides_of_set(run)
    source = _source(run)
    unseen = _read(source, "test classes")
    side = _read_cache(source, seen, unseen.embeddings.shape[1]) or _embed(run, source, seen, load)
    return _limited(ClassSides(side, unseen))


def baselines(run: Run, *, load: Load | None = None) -> dict[str, ClassSides]:
    """Return the same classes embedded without the training of the run; computed by this call.

    The names are those of `dmlcore.training.baselines`: "inputs" (raw inputs), "untrained" (the network before its
    first step), and, for a pretrained or frozen backbone and for vectors, "features", "pca_whitened" and "whitened"
    (features of the backbone, without and with a whitening that is fitted to the training split).

    For an embedding set they are "pca_whitened" and "whitened". They are fitted to the classes that `dml train` trains
    on by default, so the seen classes are the validation classes of that training run, and the unseen ones those of
    `sides` unless the set divides the samples of each class.

    Args:
        run: Run or embedding set.
        load: As in `sides`.

    Raises:
        ThresholdError: As in `sides`.
        DataError, TrainingError: Data set or initial weights cannot be read.
    """
    if run.is_embedding_set:
        return _baselines_of_set(run)
    dataset = (load or build.load_data)(run.spec)
    _require_unseen(run, dataset)
    state = build.build(run.spec, dataset, torch.device("cpu"))
    made = {
        "inputs": _of_splits(dataset, lambda split: evaluation.raw_inputs(dataset, split)),
        "untrained": _of_splits(
            dataset, lambda split: evaluation.embed(embedder(state), state.data, split, state.device)
        ),
    }
    if feature_baselines.applies(state):
        train = feature_baselines.fitted_samples(state.data)
        features = {
            split: feature_baselines.extract(state, rows_of(state.data, split)[0]) for split in ("validation", "test")
        }
        made |= _whitened(dataset, feature_baselines.extract(state, train), dataset.labels[train], features)
    return {name: _limited(pair) for name, pair in made.items()}


def evaluated_classes(run: Run) -> Side:
    """Return the embeddings of the test classes, or of all classes of an embedding set.

    They can be shown if `sides` raises ThresholdError. Beyond MAX_SAMPLES samples, whole classes are drawn at random.

    Raises:
        ThresholdError: The run has not been evaluated.
        Unreadable: The file of the embeddings is damaged.
    """
    return _draw(_read(_source(run), "all classes" if run.is_embedding_set else "test classes"))


def path_of(source: Path, seen: Seen = "validation") -> Path:
    """Return the path of the cached embeddings of a split that belong to a file of test embeddings."""
    return source.with_name(f"{source.stem}.{seen}.npz")


def _source(run: Run) -> Path:
    source = run.embeddings()
    if source is None:
        raise ThresholdError(f"{run.id} has no test embeddings yet; compute them: dml evaluate {run.id}")
    return source


def _read(path: Path, name: str, **sizes: int) -> Side:
    stored = arrays.read(path, EMBEDDINGS, "embeddings", "labels", "indices", remedy=AGAIN, **sizes)
    return Side(name, stored["embeddings"], stored["labels"], stored["indices"])


def _read_cache(source: Path, seen: Seen, dimensions: int) -> Side | None:
    """Return the cached embeddings of a split; None if the file is missing or damaged."""
    if not path_of(source, seen).exists():
        return None
    try:
        return _read(path_of(source, seen), NAMES[seen], D=dimensions)
    except Unreadable as error:
        log.warning("%s", error)
        return None


def _embed(run: Run, source: Path, seen: Seen, load: Load | None) -> Side:
    """Embed a split with the weights of the test embeddings, and cache the result if possible."""
    dataset = (load or build.load_data)(run.spec)
    _require_unseen(run, dataset)
    state = starts.load_for_evaluation(run, dataset=dataset, device=torch.device("cpu"))
    use_best(state)
    network = embedder(state)
    if checkpoint.digest_of(network.state_dict()) != source.stem:
        raise ThresholdError(f"{run.id} was trained further since its evaluation; run: dml evaluate {run.id}")
    embeddings, rows = evaluation.embed(network, state.data, seen, state.device), dataset.splits[seen]
    try:
        evaluation.save_embeddings(path_of(source, seen), embeddings, dataset, seen)
    except OSError as error:  # full disk or read-only folder: computed again next time
        log.warning("%s cannot be written: %s", path_of(source, seen).name, error)
    return Side(NAMES[seen], embeddings, dataset.labels[rows], rows)


def _require_unseen(run: Run, dataset: Dataset) -> None:
    """Raise ThresholdError unless training, validation and test split have different classes."""
    labels = {split: np.unique(dataset.labels[rows_of(dataset, split)[0]]) for split in ("train", "validation", "test")}
    settings, count = dataset.settings, {split: len(classes) for split, classes in labels.items()}
    remedy = "Train a run with data.split=classes and data.validation=classes"
    if not count["validation"]:
        raise ThresholdError(
            f"{run.id} has no validation classes, on which a threshold could be chosen (data.validation is "
            f"{settings.get('validation')}). {remedy}."
        )
    if len(shared := np.intersect1d(labels["validation"], labels["train"])):
        raise ThresholdError(
            f"{run.id} has no validation classes: it is trained on {len(shared):,} of the {count['validation']:,} "
            f"classes of its validation split (data.validation is {settings.get('validation')}), so a threshold chosen "
            f"on them would promise too much. {remedy}."
        )
    if len(shared := np.intersect1d(labels["test"], np.concatenate([labels["train"], labels["validation"]]))):
        raise ThresholdError(
            f"{run.id} has no unseen classes: {len(shared):,} of its {count['test']:,} test classes are also in the "
            f"training or validation split (data.split is {settings.get('split')}). {remedy}."
        )


def _of_splits(dataset: Dataset, embed: Callable[[str], Singles]) -> ClassSides:
    """Return the validation and the test classes with the embeddings that `embed` returns for a split."""

    def side(split: str) -> Side:
        rows = rows_of(dataset, split)[0]
        return Side(f"{split} classes", embed(split), dataset.labels[rows], rows)

    return ClassSides(side("validation"), side("test"))


def _whitened(dataset: Dataset, features: Singles, labels: Ints, splits: dict[str, Singles]) -> dict[str, ClassSides]:
    """Return the baselines from features of two splits, by name, with whitenings fitted to `features` and `labels`."""
    if features.shape[1] > feature_baselines.MOST_FEATURES or len(features) < 2:
        return {}
    is_vectors = len(dataset.inputs.shape) == 2
    made = {}
    for name, whiten in feature_baselines.whitened(features, labels, is_vectors):
        embedded = {split: whiten(values) for split, values in splits.items()}
        made[name] = _of_splits(dataset, embedded.__getitem__)
    return made


# ---- embedding sets


def _sides_of_set(run: Run) -> ClassSides:
    side = _read(_source(run), "")
    imported = stored.load(run.path / run_directory.SET)
    if not imported.labelled:
        raise ThresholdError(f"{run.id} has no labels; import it again with a column of labels: dml import --help")
    if len(imported.labels) <= side.indices.max():
        raise Unreadable(f"The embeddings of {run.id} do not belong to its set. Import it again.")
    is_seen, seen, note = _seen(imported)
    is_unseen = imported.labels >= imported.train_classes
    unseen = "second half" if seen == "first half" else "test classes"
    for name, labels in ((seen, imported.labels[is_seen]), (unseen, imported.labels[is_unseen])):
        if (count := len(np.unique(labels))) < 2:
            raise ThresholdError(
                f"{run.id} has too few classes: two are needed to choose a threshold and two more to measure it, but "
                f"the {name} of the {len(imported.class_names):,} classes are {count}; import a set with more classes"
            )
    rows = side.indices
    return _limited(ClassSides(_subset(side, is_seen[rows], seen), _subset(side, is_unseen[rows], unseen), note))


def _seen(imported: stored.EmbeddingSet) -> tuple[Bools, str, str]:
    """Return a mask (N,) of the samples of seen classes, the name of these classes, and a note on the choice."""
    trained = imported.labels < imported.train_classes
    column = imported.roles.split
    if imported.split != "classes" or column is None:
        return trained, "first half", "no column divides the classes: the threshold is chosen on the first half of them"
    splits = np.array(roles.splits_of(imported.columns.column(column), column))
    fitted = np.unique(imported.labels[splits == "train"])
    held_out = trained & ~np.isin(imported.labels, fitted)
    if len(np.unique(imported.labels[held_out])) > 1:
        return held_out, "validation classes", ""
    note = "fewer than two classes have validation rows only: the threshold is chosen on training classes"
    return trained, "training classes", note


def _baselines_of_set(run: Run) -> dict[str, ClassSides]:
    try:
        dataset = data.load("embeddings", root=run.path / run_directory.SET, split="classes", validation="classes")
    except data.DataError as error:
        log.info("no whitened baselines of %s: %s", run.id, error)
        return {}
    train = feature_baselines.fitted_samples(dataset)
    splits = {split: np.asarray(dataset.inputs[dataset.splits[split]]) for split in ("validation", "test")}
    made = _whitened(dataset, np.asarray(dataset.inputs[train]), dataset.labels[train], splits)
    return {name: _limited(pair) for name, pair in made.items()}


# ---- large sides


def _subset(side: Side, rows: Bools, name: str) -> Side:
    return Side(name, side.embeddings[rows], side.labels[rows], side.indices[rows])


def _limited(pair: ClassSides) -> ClassSides:
    """Return both sides, with at most MAX_SAMPLES samples each, and a note if classes were left out."""
    seen, unseen = map(_draw, (pair.seen, pair.unseen))
    notes = [pair.note] if pair.note else []
    notes += [
        f"{drawn.classes:,} of {side.classes:,} {side.name} are drawn at random"
        for side, drawn in ((pair.seen, seen), (pair.unseen, unseen))
        if drawn is not side
    ]
    return replace(pair, seen=seen, unseen=unseen, note="; ".join(notes))


def _draw(side: Side) -> Side:
    """Return the side, or random whole classes of it if it has more than MAX_SAMPLES samples."""
    if len(side.labels) <= MAX_SAMPLES:
        return side
    classes, counts = np.unique(side.labels, return_counts=True)
    order = np.random.default_rng(SEED).permutation(len(classes))
    chosen = order[: max(2, int(np.searchsorted(counts[order].cumsum(), MAX_SAMPLES, side="right")))]
    return _subset(side, np.isin(side.labels, classes[chosen]), side.name)
