"""Neighbours and scores of the test embeddings of a run, computed once and cached next to the embeddings file.

`read` loads them from embeddings/DIGEST.neighbours.npz if that file belongs to embeddings/DIGEST.npz, and otherwise
computes and caches them. For 60,502 embeddings the search takes half a minute, reading the file a tenth of a second. If
a search of all queries would take too long (`neighbour_lists.too_many`), `read` searches a random sample of queries
until a background job has searched all of them.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import zipfile
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from dmlcore.inspection import neighbour_lists
from dmlcore.inspection.approximation import Approximation
from dmlcore.inspection.neighbour_lists import MOST_NEIGHBOURS
from dmlcore.inspection.positives import Positives, positives
from dmlcore.metrics import nearest, retrieval
from dmlcore.storage import arrays, atomic_files
from dmlcore.storage.arrays import EMBEDDINGS, FLOATS, INTEGERS, TEXT, ArraySpec, Unreadable
from dmlcore.typing import Array, Bools, Floats, Ints, Singles

VERSION = 1  # version of the cached values; files of other versions are computed again
AGAIN = "Evaluate the run again"
PART = 2**16  # number of rows processed at a time
log = logging.getLogger(__name__)


N, NK = ("n",), ("n", "k")  # n counts all embeddings, or only the rows that were searched
NEIGHBOURS = {
    "source": ArraySpec(TEXT, ()),
    "facts": ArraySpec(TEXT, (), optional=True),
    "rows": ArraySpec(INTEGERS, N, optional=True),
    "neighbours": ArraySpec(INTEGERS, NK),
    "distances": ArraySpec(FLOATS, NK),
    "average_precision": ArraySpec(FLOATS, N, nan=True),
    "nearest": ArraySpec(INTEGERS, N, least=-1),
    "nearest_distance": ArraySpec(FLOATS, N, nan=True),
    "farthest": ArraySpec(INTEGERS, N, least=-1),
    "farthest_distance": ArraySpec(FLOATS, N, nan=True),
    "rank": ArraySpec(INTEGERS, N),
}


@dataclass(frozen=True, eq=False)
class TestNeighbours:
    """Neighbours and scores of the embeddings of a test split, one row per sample.

    Neighbours are row indices, nearest first. If the data set has its own gallery, all neighbours are gallery rows, and
    gallery rows are not queries. In rows that were not searched yet, indices are -1, distances and scores are NaN and
    ranks are 0, until `search_rows` fills them in. Scores cover only the rows that are True in `queries`.
    """

    embeddings: Singles  # (n, D)
    indices: Ints  # (n,) sample indices in the data set
    labels: Ints  # (n,) class labels
    neighbours: Ints  # (n, k) rows of the nearest other samples, nearest first
    distances: Floats  # (n, k) distances to these neighbours
    right: Bools  # (n, k) True where the neighbour has the class of the query
    average_precision: Floats  # (n,) AP@R; NaN where the class has no other sample
    recall_at_1: float | None
    map_at_r: float | None
    is_gallery: Bools  # (n,) True for samples of a separate gallery
    content: Ints | None  # (n, 8) `identities` of the samples; None in evaluations of earlier releases
    positives: Positives  # nearest and farthest positive of each row, and the rank of the nearest
    approximation: Approximation | None  # accuracy of the lists if they come from an approximate index
    queries: Bools  # (n,) True for rows that count in scores: all queries, or a random sample if there are too many
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def is_sample(self) -> bool:
        """True if the scores cover only a sample of the queries."""
        return bool((~self.queries & ~self.is_gallery).any())

    @property
    def has_labels(self) -> bool:
        """False if all samples have the same label, as in an embedding set without labels."""
        return bool((self.labels != self.labels[:1]).any())

    @property
    def failures(self) -> Bools:
        """Boolean mask (n,) of scored queries with a nearest neighbour of another class."""
        return self.queries & ~self.right[:, 0] & ~np.isnan(self.average_precision)

    def place(self, row: int) -> str:
        """Return the rank of the nearest positive of a row as text.

        Examples are "rank 3" and, for an approximate index, "rank ≈ 3" or "beyond rank ≈ 24".
        """
        rank = int(self.positives.rank[row])
        if self.approximation is None:
            return f"rank {rank:,}"
        searched = self.is_gallery if self.is_gallery.any() else np.ones(len(self.labels), bool)
        others = int((searched & (self.labels == self.labels[row])).sum()) - int(searched[row])
        deepest = min(max(self.neighbours.shape[1], others), int(searched.sum()) - 1)
        return f"rank ≈ {rank:,}" if rank <= deepest else f"beyond rank ≈ {deepest:,}"

    def search_rows(self, rows: Ints | list[int]) -> None:
        """Search the neighbours of the given rows exactly if they are not known yet; scores do not change."""
        asked = np.unique(np.asarray(rows, np.int64))
        with self._lock:
            asked = asked[self.neighbours[asked, 0] < 0]
            if not len(asked):
                return
            search = neighbour_lists.exact_search(self.embeddings, self.is_gallery)
            classes = compared_classes(self.labels)
            lists = neighbour_lists.search_rows(self.embeddings, classes, self.is_gallery, asked, search)
            self.right[asked] = classes[lists["neighbours"]] == classes[asked, None]
            for name, values in lists.items():
                (getattr(self.positives, name) if hasattr(self.positives, name) else getattr(self, name))[asked] = (
                    values
                )

    def interval(self, values: Floats | Bools) -> float | None:
        """Return half the width of the 95 % confidence interval of a mean score that is estimated from sampled queries.

        Args:
            values: Values (n,), one per row; only those of scored queries are used.

        Returns:
            Half the width, or None if all queries were searched.
        """
        scored = values[self.queries & ~np.isnan(self.average_precision)]
        return 1.96 * float(scored.std()) / max(1, len(scored)) ** 0.5 if self.is_sample else None

    def row(self, index: str) -> int | None:
        """Return the row of a sample, given its index as text from a URL, or None if there is no such sample."""
        if not (index.isascii() and index.isdigit() and len(index) < 10):
            return None
        rows = np.flatnonzero(self.indices == int(index))
        return int(rows[0]) if len(rows) else None


def read(path: Path) -> TestNeighbours:
    """Read the neighbours and scores of an embeddings file.

    They come from the cached file if it belongs to the same embeddings. Otherwise they are computed and, if the folder
    is writable, cached.

    Args:
        path: Embeddings file, embeddings/DIGEST.npz.

    Raises:
        Unreadable: The embeddings file is damaged, or its contents do not fit together.
    """
    table = arrays.read(path, EMBEDDINGS, "embeddings", "labels", "indices", "is_gallery", "content", remedy=AGAIN)
    embeddings, labels, indices = table["embeddings"], table["labels"], table["indices"]
    is_gallery = table.get("is_gallery", np.zeros(len(labels), bool))
    lists = _read_cache(path, len(labels))
    if lists is None:
        try:
            lists = _compute(embeddings, compared_classes(labels), is_gallery)
        except (ValueError, TypeError) as error:
            raise Unreadable(f"{path.name} cannot be shown: {error}. {AGAIN}.") from None
        _write_cache(path, lists)
    queries, facts = ~is_gallery, lists.pop("facts", None)
    if "rows" in lists:
        lists = _expand(lists, len(labels))
        queries &= lists["neighbours"][:, 0] >= 0
    neighbours, precision = lists["neighbours"], lists["average_precision"]
    scored = queries & ~np.isnan(precision)
    right = _right(compared_classes(labels), neighbours)
    return TestNeighbours(
        embeddings=embeddings,
        indices=indices,
        labels=labels,
        neighbours=neighbours,
        distances=lists["distances"],
        right=right,
        average_precision=precision,
        recall_at_1=float(right[scored, 0].mean()) if scored.any() else None,
        map_at_r=float(precision[scored].mean()) if scored.any() else None,
        is_gallery=is_gallery,
        content=table.get("content"),
        positives=Positives(**{field.name: lists[field.name] for field in fields(Positives)}),
        approximation=None if facts is None else Approximation.from_json(str(facts)),
        queries=queries,
    )


def compared_classes(labels: Ints) -> Ints:
    """Return labels (n,) by which neighbours are correct or incorrect.

    If all samples have the same label, each one gets a class of its own: there is nothing to confuse, so no sample has
    a positive and scores are undefined.
    """
    return labels if (labels != labels[:1]).any() else np.arange(len(labels))


def keep(path: Path) -> None:
    """Compute and cache the neighbours of an embeddings file unless the cache is valid.

    Raises:
        Unreadable: The embeddings file is damaged, or its contents do not fit together.
    """
    read(path)


def path_of(source: Path) -> Path:
    """Return the path of the cached neighbours of an embeddings file."""
    return source.with_name(f"{source.stem}.neighbours.npz")


def fingerprint(path: Path) -> str:
    """Return a digest of the contents of an .npz file: names, sizes and CRC-32 of its arrays.

    A copied or moved file has the same digest. Only the table of contents is read.

    Raises:
        Unreadable: The file is damaged.
    """
    try:
        with zipfile.ZipFile(path) as file:
            members = sorted((item.filename, item.file_size, item.CRC) for item in file.infolist())
    except Exception as error:  # a truncated or manipulated archive can raise almost any exception
        raise Unreadable(f"{path.name} cannot be read ({error}). {AGAIN}.") from None
    return hashlib.sha256(repr((VERSION, MOST_NEIGHBOURS, members)).encode()).hexdigest()


def _read_cache(path: Path, count: int) -> dict[str, Array] | None:
    """Return the cached arrays of `count` embeddings; None if the cache is missing, damaged or stale."""
    if not path_of(path).exists():
        return None
    try:
        stored = arrays.read(path_of(path), NEIGHBOURS, remedy="It is computed again")
    except Unreadable as error:
        log.warning("%s", error)
        return None
    try:
        if "facts" in stored:
            Approximation.from_json(str(stored["facts"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        log.warning("%s: %s", path_of(path).name, error)
        return None
    numbers = [stored[name] for name in ("neighbours", "nearest", "farthest", "rows") if name in stored]
    fits = all(row.size and row.max() < count for row in numbers) and ("rows" in stored or len(numbers[0]) == count)
    return stored if str(stored.pop("source")) == fingerprint(path) and fits else None


def _write_cache(path: Path, lists: dict[str, Array]) -> None:
    try:
        write(path, lists)
    except OSError as error:  # full disk or read-only folder: computed again next time
        log.warning("%s cannot be written: %s", path_of(path).name, error)


def write(path: Path, lists: dict[str, Array]) -> None:
    """Cache neighbour lists next to an embeddings file.

    Args:
        path: Embeddings file.
        lists: Arrays named as in NEIGHBOURS, without `source`; `facts` is the JSON text of an `Approximation`.

    Raises:
        OSError: The file cannot be written.
    """
    rows = lists["neighbours"]
    narrow = (
        rows if rows.nbytes >= arrays.MIN_MAPPED_BYTES else rows.astype(np.int32)
    )  # arrays large enough to be memory-mapped keep their type
    content = lists | {"neighbours": narrow, "source": np.array(fingerprint(path))}
    atomic_files.replace(path_of(path), lambda file: arrays.save(file, **content))


def _compute(embeddings: Singles, labels: Ints, is_gallery: Bools) -> dict[str, Array]:
    """Return the arrays to cache: for all rows or, if these are too many, for random queries listed in `rows` (m,)."""
    if neighbour_lists.too_many(is_gallery):
        rows = neighbour_lists.draw_queries(is_gallery)
        search = neighbour_lists.exact_search(embeddings, is_gallery)
        return neighbour_lists.search_rows(embeddings, labels, is_gallery, rows, search) | {"rows": rows}
    distances, neighbours = _neighbours(embeddings, is_gallery)
    ranked = positives(embeddings, labels, is_gallery, neighbours)
    precision = _average_precision(embeddings, labels, is_gallery, neighbours)
    more = {field.name: getattr(ranked, field.name) for field in fields(Positives)}
    return {"neighbours": neighbours, "distances": distances, "average_precision": precision, **more}


def _expand(lists: dict[str, Array], count: int) -> dict[str, Array]:
    """Expand the arrays of some rows to all rows; rows that were not searched hold -1, NaN or rank 0.

    Row indices are stored as int32 and distances as float32 to save memory, because most entries are empty.
    """
    rows, whole = lists["rows"], dict[str, Array]()
    for name, values in lists.items():
        if name != "rows":
            missing = np.nan if values.dtype.kind == FLOATS else 0 if name == "rank" else -1
            narrow = {"neighbours": np.int32, "distances": np.float32}.get(name, values.dtype)
            whole[name] = np.full((count, *values.shape[1:]), missing, narrow)
            whole[name][rows] = values
    return whole


def _right(labels: Ints, neighbours: Ints) -> Bools:
    """Return a mask (n, k) of the neighbours that have the class of their query, computed block by block."""
    right = np.empty(neighbours.shape, bool)
    for start in range(0, len(labels), PART):
        part = slice(start, start + PART)
        right[part] = (labels[neighbours[part]] == labels[part, None]) & (neighbours[part] >= 0)
    return right


def _neighbours(embeddings: Singles, is_gallery: Bools) -> tuple[Floats, Ints]:
    """Return distances and rows (n, k) of the nearest other samples, searched in the gallery if there is one."""
    if not is_gallery.any():
        return nearest(embeddings, k=min(MOST_NEIGHBOURS, len(embeddings) - 1))
    rows = np.flatnonzero(is_gallery)
    gallery, k = embeddings[rows], min(MOST_NEIGHBOURS, len(rows) - 1)
    distances, neighbours = np.empty((len(embeddings), k)), np.empty((len(embeddings), k), np.int64)
    for queries, search in (
        (~is_gallery, nearest(embeddings[~is_gallery], gallery, k)),
        (is_gallery, nearest(gallery, k=k)),
    ):
        distances[queries], neighbours[queries] = search[0], rows[search[1]]
    return distances, neighbours


def _average_precision(
    embeddings: Singles,
    labels: Ints,
    is_gallery: Bools,
    neighbours: Ints,
) -> Floats:
    """Return AP@R (n,) of the queries; NaN for gallery rows and for queries without another sample of their class."""
    queries, searched = ~is_gallery, is_gallery if is_gallery.any() else np.ones(len(labels), bool)
    values, codes = np.unique(labels, return_inverse=True)
    matches = np.bincount(codes[searched], minlength=len(values))[codes] - (not is_gallery.any())
    if matches[queries].max(initial=0) > neighbours.shape[1]:  # R exceeds the number of stored neighbours
        precision = np.full(len(labels), np.nan)
        gallery = (embeddings[searched], labels[searched]) if is_gallery.any() else (None, None)
        scores = retrieval(embeddings[queries], labels[queries], gallery=gallery[0], gallery_labels=gallery[1], ks=(1,))
        precision[queries] = scores.per_query_average_precision
        return precision
    return neighbour_lists.average_precision(_right(labels, neighbours), np.where(queries, matches, 0))
