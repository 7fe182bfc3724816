"""Samplers, which choose the samples of a batch as a pure function of seed, step and table of embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.typing import Array, Ints, Singles

ROWS = 32  # number of table rows that are compared with the whole table in one call


class Sampler(Protocol):
    """Interface of samplers; `uses_table` is True if a sampler needs a table of embeddings of the training split."""

    uses_table: bool

    @property
    def tuples(self) -> tuple[Ints, Ints, Ints] | None:
        """Positions of anchors, positives and negatives in each batch, (T,) each; None unless batches are mined."""

    def batch(self, step: int, table: Singles | None = None) -> Ints:
        """Return the samples of batch `step` >= 0, as positions in the labels; `table` holds embeddings (N, D)."""
        ...


class BalancedSampler:
    """Sampler of batches with `classes` classes and `samples` samples per class.

    Classes with a single sample cannot form a pair and are never drawn; the attribute `left_out` is the number of such
    classes. In a class with fewer than `samples` samples, some are repeated once all have been used; the attribute
    `repeating` is the number of such classes.

    Args:
        labels: Integer labels, (N,).
        classes: Classes per batch.
        samples: Samples per class.
        seed: Seed, at least 0.

    Raises:
        ValueError: If fewer than `classes` classes have two samples or more.
    """

    uses_table = False
    tuples = None

    def __init__(self, labels: ArrayLike, classes: int, samples: int, *, seed: int) -> None:
        labels = _integers(labels)
        if classes < 1 or samples < 1 or seed < 0:
            raise ValueError(f"needs classes >= 1, samples >= 1, seed >= 0; got {classes}, {samples}, {seed}")
        by_class = _classes(labels)
        sizes = np.array([len(members) for members in by_class])

        self.members = [members for members in by_class if len(members) > 1]
        self.classes, self.samples, self.seed = classes, samples, seed
        self.left_out = int((sizes == 1).sum())
        self.repeating = int(((sizes > 1) & (sizes < samples)).sum())
        if len(self.members) < classes:
            raise ValueError(
                f"a batch needs {classes} classes, but only {len(self.members)} of {len(sizes)} have two samples or "
                f"more ({self.left_out} have one); lower the classes per batch"
            )

    def batch(self, step: int, table: Singles | None = None) -> Ints:
        """Return the (classes * samples,) positions in `labels` of batch `step` >= 0, grouped by class."""
        random = random_at(self.seed, step)
        chosen = random.choice(len(self.members), self.classes, replace=False)
        return np.concatenate([self._draw(self.members[label], random) for label in chosen])

    def _draw(self, members: Ints, random: np.random.Generator) -> Ints:
        rounds = -(-self.samples // len(members))
        return np.concatenate([random.permutation(members) for _ in range(rounds)])[: self.samples]


def batch_indices(labels: ArrayLike, classes: int, samples: int, *, seed: int, step: int) -> Ints:
    """Return the (classes * samples,) positions in `labels` of one balanced batch; see BalancedSampler.

    The same seed and step give the same batch on every machine, independent of earlier calls. In a loop, create one
    BalancedSampler instead, which indexes the classes once.

    Args:
        labels: Integer labels, (N,).
        classes: Classes per batch.
        samples: Samples per class.
        seed: Seed, at least 0.
        step: Number of the batch, at least 0.
    """
    return BalancedSampler(labels, classes, samples, seed=seed).batch(step)


class RandomSampler:
    """Sampler of batches of `size` different samples, drawn at random without regard to their classes.

    Args:
        labels: Integer labels, (N,).
        size: Samples per batch.
        seed: Seed, at least 0.

    Raises:
        ValueError: If there are fewer than `size` samples, or if no batch could contain both a positive and a negative
            pair.
    """

    uses_table = False
    tuples = None

    def __init__(self, labels: ArrayLike, size: int, *, seed: int) -> None:
        self.labels, self.size, self.seed = _checked(labels, size, seed), size, seed

    def batch(self, step: int, table: Singles | None = None) -> Ints:
        """Return the (size,) positions in `labels` of batch `step` >= 0."""
        return random_at(self.seed, step).choice(len(self.labels), self.size, replace=False)


class MinedSampler:
    """Sampler of triplets whose negatives are mined from the whole training split, by distances between embeddings.

    A batch consists of size // 3 anchors, drawn at random from the classes with two samples or more; then one random
    positive per anchor; then one negative per anchor. Distances are computed from a table of embeddings.
    `hard_negative` takes the negative nearest to the anchor. `semi_hard` takes the nearest negative that is farther
    than the positive, or the farthest negative if there is none (Can 2018, Eq. 2.11-2.13), so that the batch keeps its
    size. Ties go to the lower index. The attribute `left_out` is the number of classes with one sample, which can only
    be negatives.

    Args:
        labels: Integer labels, (N,).
        size: Samples per batch.
        seed: Seed, at least 0.
        miner: Name of a miner that chooses one negative per pair.

    Raises:
        ValueError: If the miner does not choose one negative per pair, or if there are too few samples for a batch.
    """

    uses_table = True
    miners = ("semi_hard", "semi_hard_or_farthest", "hard_negative")

    def __init__(self, labels: ArrayLike, size: int, *, seed: int, miner: str = "semi_hard") -> None:
        if miner not in self.miners:
            raise ValueError(
                f"mined batches take the negatives that {' or '.join(self.miners)} chooses; set miner.name to one of "
                f"them, got {miner!r}"
            )
        if size < 3:
            raise ValueError(f"a batch of mined triplets needs size >= 3, got {size}")
        self.labels, self.count, self.seed, self.miner = _checked(labels, size, seed), size // 3, seed, miner
        classes = _classes(self.labels)
        self.left_out = sum(len(members) == 1 for members in classes)
        self.anchors = np.sort(np.concatenate([m for m in classes if len(m) > 1]))
        if len(self.anchors) < self.count:
            raise ValueError(
                f"a batch needs {self.count} anchors, but only {len(self.anchors)} samples have another one of their "
                f"class; lower the size of the batch"
            )
        self._members = {int(self.labels[m[0]]): m for m in classes}
        anchors, positives, negatives = np.arange(3 * self.count).reshape(3, self.count)
        self.tuples = anchors, positives, negatives

    def batch(self, step: int, table: Singles | None = None) -> Ints:
        """Return the (3 T,) positions in `labels` of batch `step`: anchors, positives, negatives.

        Args:
            step: Number of the batch, at least 0.
            table: Embeddings of the training split, (N, D) float32.
        """
        table = _table(table, len(self.labels))
        random = random_at(self.seed, step)
        anchors = random.choice(self.anchors, self.count, replace=False)
        positives = np.array([self._other(a, random) for a in anchors])
        negatives = np.concatenate(
            [self._negatives(table, anchors[i : i + ROWS], positives[i : i + ROWS]) for i in range(0, self.count, ROWS)]
        )
        return np.concatenate([anchors, positives, negatives])

    def _other(self, anchor: int, random: np.random.Generator) -> int:
        members = self._members[int(self.labels[anchor])]
        drawn = int(random.integers(len(members) - 1))
        return int(members[drawn + (drawn >= np.searchsorted(members, anchor))])

    def _negatives(self, table: Singles, anchors: Ints, positives: Ints) -> Ints:
        # Compare only the anchors of this batch with all samples, which is far cheaper than searching the neighbours of
        # all samples whenever the table is refreshed.
        squares = _squares(table, anchors)
        same = self.labels[anchors][:, None] == self.labels
        nearest: Ints = np.where(same, np.inf, squares).argmin(1)
        if self.miner == "hard_negative":
            return nearest
        positive = squares[np.arange(len(anchors)), positives]
        farther = np.where(same | (squares <= positive[:, None]), np.inf, squares)
        farthest = np.where(same, -np.inf, squares).argmax(1)
        negatives: Ints = np.where(np.isfinite(farther.min(1)), farther.argmin(1), farthest)
        return negatives


class NeighbourhoodSampler:
    """Sampler of batches of `size` samples that consist of neighbourhoods in a table of embeddings (N, D).

    This is local neighbourhood sampling. Random centres are added to the batch, each with its `neighbours` nearest
    samples. A centre is skipped unless these include a sample of its class and one of another class, or if any of them
    is already in the batch. The last neighbourhood is truncated to the size of the batch. Centres are drawn without
    replacement within an epoch. If too few centres qualify, neighbourhoods may overlap; if there are still too few,
    they may contain a single class, and finally consist of the centre only.

    Reference:
        Can 2018, Sec. 3.4.
    """

    uses_table = True
    tuples = None

    def __init__(self, labels: ArrayLike, size: int, neighbours: int, *, seed: int) -> None:
        self.labels, self.size, self.neighbours, self.seed = _checked(labels, size, seed), size, neighbours, seed
        if not 1 <= neighbours < len(self.labels):
            raise ValueError(
                f"a neighbourhood of {neighbours} needs 1 <= neighbours < {len(self.labels)}, the number of samples"
            )

    def batch(self, step: int, table: Singles | None = None) -> Ints:
        """Return the (size,) positions in `labels` of batch `step`.

        `table` holds float32 embeddings (N, D) of the training split.
        """
        count = len(self.labels)
        epoch, start = divmod(step * self.size, count)
        order = np.roll(random_at(self.seed, epoch).permutation(count), -start)
        return neighbourhood_batch(self.labels, _table(table, count), order, self.size, self.neighbours)


def neighbourhood_batch(labels: Ints, table: Array, order: Ints, size: int, neighbours: int) -> Ints:
    """Return a batch of `size` sample indices: neighbourhoods of centres, which are tried in the order `order`."""
    chosen: list[int] = []
    taken = np.zeros(len(labels), bool)
    for mixed, apart in ((True, True), (True, False), (False, False)):
        for centre, nearest in _neighbourhoods(table, order, neighbours):
            near = labels[nearest] == labels[centre]
            if mixed and (near.all() or not near.any()):
                continue
            group = np.concatenate([[centre], nearest])
            if apart and taken[group].any():
                continue
            group = group[~taken[group]]
            chosen.extend(group.tolist())
            taken[group] = True
            if len(chosen) >= size:
                return np.array(chosen[:size])
    raise ValueError(f"a batch needs {size} samples, got {len(labels)}")


def _neighbourhoods(table: Array, order: Ints, k: int) -> Iterator[tuple[int, Ints]]:
    """Yield each centre in `order` with its k nearest other rows of the table (N, D); ties go to the lower index."""
    # bound on the float32 rounding error: rows that are farther than the k-th by less than this remain candidates
    slack = 1e-5 * float(np.square(table).sum(1).max())
    for centres in np.split(order, range(ROWS, len(order), ROWS)):
        for centre, row in zip(centres.tolist(), _squares(table, centres), strict=True):
            row[centre] = np.inf
            reach = np.partition(row, k - 1)[k - 1]
            listed = np.flatnonzero(row <= reach + slack)
            listed = listed[listed != centre]
            exact = np.square(table[listed].astype(np.float64) - table[centre]).sum(1)
            yield centre, listed[np.lexsort((listed, exact))][:k]


def _squares(table: Array, rows: Ints) -> Singles:
    """Return squared distances (n, N) from the rows `rows` (n,) of the table (N, D) to all its rows."""
    import faiss

    table = np.ascontiguousarray(table, np.float32)
    squares: Singles = faiss.pairwise_distances(table[rows], table)
    return squares


def create(
    name: str,
    labels: ArrayLike,
    classes: int,
    samples: int,
    *,
    seed: int,
    miner: str = "semi_hard",
    neighbours: int = 16,
) -> Sampler:
    """Create a sampler of batches with classes * samples samples; `name` is the setting `batch.sampler`.

    Samplers with `uses_table` need the (N, D) float32 embeddings of the training split; those named "mined" have
    `tuples`.

    Args:
        name: "balanced", "random", "mined" or "neighbourhood".
        labels: Integer labels, (N,).
        classes: Classes per batch.
        samples: Samples per class.
        seed: Seed, at least 0.
        miner: Miner of a "mined" sampler.
        neighbours: Neighbours per centre of a "neighbourhood" sampler.

    Raises:
        ValueError: If no batch could be drawn; the message says why.
    """
    size = classes * samples
    if name == "balanced":
        return BalancedSampler(labels, classes, samples, seed=seed)
    if name == "random":
        return RandomSampler(labels, size, seed=seed)
    if name == "mined":
        return MinedSampler(labels, size, seed=seed, miner=miner)
    if name == "neighbourhood":
        return NeighbourhoodSampler(labels, size, neighbours, seed=seed)
    raise ValueError(f"unknown sampler {name!r}; known: balanced, random, mined, neighbourhood")


def random_at(seed: int, step: int) -> np.random.Generator:
    """Return the random generator of batch `step`, which depends on (seed, step) only."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(step,)))


def _checked(labels: ArrayLike, size: int, seed: int) -> Ints:
    labels = _integers(labels)
    if size < 2 or seed < 0:
        raise ValueError(f"needs size >= 2, seed >= 0; got {size}, {seed}")
    sizes = [len(members) for members in _classes(labels)]
    if len(labels) < size:
        raise ValueError(f"a batch needs {size} samples, but there are {len(labels)}; lower the size of the batch")
    if len(sizes) < 2 or max(sizes) < 2:
        raise ValueError(
            f"a batch needs two classes, one of them with two samples; there are {len(sizes)} classes, the largest "
            f"with {max(sizes)}"
        )
    return labels


def _integers(labels: ArrayLike) -> Ints:
    labels = np.asarray(labels)
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be (N,) integers, got {labels.dtype} of shape {labels.shape}")
    return labels


def _classes(labels: Ints) -> list[Ints]:
    """Return the positions of the samples of each class, ordered by label."""
    _, starts = np.unique(np.sort(labels), return_index=True)
    return np.split(np.argsort(labels, kind="stable"), starts[1:])


def _table(table: Singles | None, count: int) -> Singles:
    if table is None:
        raise ValueError("this sampler needs the table of embeddings of the training split, (N, D) float32")
    if table.ndim != 2 or len(table) != count:
        raise ValueError(f"the table of embeddings must have {count} rows like the labels, got {table.shape}")
    return table
