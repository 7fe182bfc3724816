"""What a run has learned, ready to look at: neighbours and scores of its test embeddings, computed once and kept.

Beside embeddings/DIGEST.npz stands DIGEST.neighbours.npz, which `keep` writes after an evaluation and `read` where it
is missing: of 60,502 embeddings the search takes half a minute, the file a tenth of a second. Of so many that the
search would take long (`neighbour_lists.too_many`) `read` asks a sample of the queries alone, until all were asked in a
job.
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

VERSION = 1  # of the kept file: one of another version is made anew
AGAIN = "Evaluate the run again"
PART = 2**16  # rows
log = logging.getLogger(__name__)


N, NK = ("n",), ("n", "k")  # n: all embeddings, or the rows that were asked
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
    """Row i is sample `indices[i]` of the data set, of class `labels[i]`; neighbours are rows too, nearest first.

    Where the data set has a gallery of its own, neighbours are rows of it, and its rows are no queries. Rows that were
    not asked for their neighbours have -1, NaN and 0 until `ask` fills them in; scores are of the `queries` alone.
    """

    embeddings: Singles  # (n, D)
    indices: Ints  # (n,)
    labels: Ints  # (n,)
    neighbours: Ints  # (n, k)
    distances: Floats  # (n, k)
    right: Bools  # (n, k): of the query's class
    average_precision: Floats  # (n,), NaN where the class has no other sample
    recall_at_1: float | None
    map_at_r: float | None
    is_gallery: Bools  # (n,)
    content: Ints | None  # (n, 8): which samples these are; None in an evaluation of an earlier release
    positives: Positives  # of each row: the nearest and the farthest of its class, and the rank of the nearest
    approximation: Approximation | None  # where lists are those of an index
    queries: Bools  # (n,): those that count in scores: all, or of so many that all would take long a sample
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def is_sample(self) -> bool:
        """Whether scores are those of some of the queries."""
        return bool((~self.queries & ~self.is_gallery).any())

    @property
    def failures(self) -> Bools:
        """(n,): the nearest neighbour is of another class although there is one of the same."""
        return self.queries & ~self.right[:, 0] & ~np.isnan(self.average_precision)

    def place(self, row: int) -> str:
        """Where the nearest of its class stands, in words: "place 3", of an index "place ≈ 3" or "after place ≈ 24"."""
        rank = int(self.positives.rank[row])
        if self.approximation is None:
            return f"place {rank:,}"
        searched = self.is_gallery if self.is_gallery.any() else np.ones(len(self.labels), bool)
        others = int((searched & (self.labels == self.labels[row])).sum()) - int(searched[row])
        deepest = min(max(self.neighbours.shape[1], others), int(searched.sum()) - 1)
        return f"place ≈ {rank:,}" if rank <= deepest else f"after place ≈ {deepest:,}"

    def ask(self, rows: Ints | list[int]) -> None:
        """Search for the neighbours of these rows, exactly, where they are not known yet; they count in no score."""
        asked = np.unique(np.asarray(rows, np.int64))
        with self._lock:
            asked = asked[self.neighbours[asked, 0] < 0]
            if not len(asked):
                return
            search = neighbour_lists.exact(self.embeddings, self.is_gallery)
            lists = neighbour_lists.ask(self.embeddings, self.labels, self.is_gallery, asked, search)
            self.right[asked] = self.labels[lists["neighbours"]] == self.labels[asked, None]
            for name, values in lists.items():
                (getattr(self.positives, name) if hasattr(self.positives, name) else getattr(self, name))[asked] = (
                    values
                )

    def off(self, values: Floats | Bools) -> float | None:
        """Half the 95 % interval of a mean over all queries, from values (n,) of those asked; None where all were."""
        scored = values[self.queries & ~np.isnan(self.average_precision)]
        return 1.96 * float(scored.std()) / max(1, len(scored)) ** 0.5 if self.is_sample else None

    def row(self, index: str) -> int | None:
        """The row of a sample named in a link, or None."""
        if not (index.isascii() and index.isdigit() and len(index) < 10):
            return None
        rows = np.flatnonzero(self.indices == int(index))
        return int(rows[0]) if len(rows) else None


def read(path: Path) -> TestNeighbours:
    """Neighbours and scores of an embeddings file, from the file beside it where that is of the same embeddings.

    Otherwise they are computed and, where the folder may be written to, kept. Raises Unreadable.
    """
    table = arrays.read(path, EMBEDDINGS, "embeddings", "labels", "indices", "is_gallery", "content", remedy=AGAIN)
    embeddings, labels, indices = table["embeddings"], table["labels"], table["indices"]
    is_gallery = table.get("is_gallery", np.zeros(len(labels), bool))
    lists = _kept(path, len(labels))
    if lists is None:
        try:
            lists = _computed(embeddings, labels, is_gallery)
        except (ValueError, TypeError) as error:
            raise Unreadable(f"{path.name} cannot be shown: {error}. {AGAIN}.") from None
        _keep(path, lists)
    queries, facts = ~is_gallery, lists.pop("facts", None)
    if "rows" in lists:
        lists = _spread(lists, len(labels))
        queries &= lists["neighbours"][:, 0] >= 0
    neighbours, precision = lists["neighbours"], lists["average_precision"]
    scored = queries & ~np.isnan(precision)
    right = _right(labels, neighbours)
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


def keep(path: Path) -> None:
    """Make sure that the neighbours of an embeddings file are kept beside it; raises Unreadable."""
    read(path)


def path_of(source: Path) -> Path:
    """Where the neighbours of an embeddings file are kept."""
    return source.with_name(f"{source.stem}.neighbours.npz")


def fingerprint(path: Path) -> str:
    """What changes with the contents of an .npz file: names, sizes and CRC-32 of its arrays; raises Unreadable.

    A copied or moved file has the same; nothing but the table of contents is read.
    """
    try:
        with zipfile.ZipFile(path) as file:
            members = sorted((item.filename, item.file_size, item.CRC) for item in file.infolist())
    except Exception as error:  # a cut or forged archive raises nearly anything
        raise Unreadable(f"{path.name} cannot be read ({error}). {AGAIN}.") from None
    return hashlib.sha256(repr((VERSION, MOST_NEIGHBOURS, members)).encode()).hexdigest()


def _kept(path: Path, count: int) -> dict[str, Array] | None:
    """The arrays beside a file of so many embeddings, or None if they are missing, damaged or of other embeddings."""
    if not path_of(path).exists():
        return None
    try:
        stored = arrays.read(path_of(path), NEIGHBOURS, remedy="They are computed anew")
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


def _keep(path: Path, lists: dict[str, Array]) -> None:
    try:
        write(path, lists)
    except OSError as error:  # a full disk or a folder that only others may write to: it is computed again next time
        log.warning("%s cannot be kept: %s", path_of(path).name, error)


def write(path: Path, lists: dict[str, Array]) -> None:
    """Keep these lists beside an embeddings file; `facts`: the JSON of an `Approximation`. Raises OSError."""
    rows = lists["neighbours"]
    narrow = (
        rows if rows.nbytes >= arrays.MIN_MAPPED_BYTES else rows.astype(np.int32)
    )  # what is mapped is mapped as it is
    content = lists | {"neighbours": narrow, "source": np.array(fingerprint(path))}
    atomic_files.replace(path_of(path), lambda file: arrays.save(file, **content))


def _computed(embeddings: Singles, labels: Ints, is_gallery: Bools) -> dict[str, Array]:
    """What is kept: of all rows, or where that takes long of some queries, which `rows` (m,) then names."""
    if neighbour_lists.too_many(is_gallery):
        rows = neighbour_lists.drawn(is_gallery)
        search = neighbour_lists.exact(embeddings, is_gallery)
        return neighbour_lists.ask(embeddings, labels, is_gallery, rows, search) | {"rows": rows}
    distances, neighbours = _neighbours(embeddings, is_gallery)
    ranked = positives(embeddings, labels, is_gallery, neighbours)
    precision = _average_precision(embeddings, labels, is_gallery, neighbours)
    more = {field.name: getattr(ranked, field.name) for field in fields(Positives)}
    return {"neighbours": neighbours, "distances": distances, "average_precision": precision, **more}


def _spread(lists: dict[str, Array], count: int) -> dict[str, Array]:
    """Arrays of all rows from those of some, in half the precision, as most of them say nothing: -1, NaN, rank 0."""
    rows, whole = lists["rows"], dict[str, Array]()
    for name, values in lists.items():
        if name != "rows":
            missing = np.nan if values.dtype.kind == FLOATS else 0 if name == "rank" else -1
            narrow = {"neighbours": np.int32, "distances": np.float32}.get(name, values.dtype)
            whole[name] = np.full((count, *values.shape[1:]), missing, narrow)
            whole[name][rows] = values
    return whole


def _right(labels: Ints, neighbours: Ints) -> Bools:
    """(n, k): of the class of the row; part by part, as all classes at once would be the largest array."""
    right = np.empty(neighbours.shape, bool)
    for start in range(0, len(labels), PART):
        part = slice(start, start + PART)
        right[part] = (labels[neighbours[part]] == labels[part, None]) & (neighbours[part] >= 0)
    return right


def _neighbours(embeddings: Singles, is_gallery: Bools) -> tuple[Floats, Ints]:
    """Distances and rows (n, k) of the nearest others; in the gallery where there is one, for its own rows too."""
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
    """AP@R (n,) of the queries; NaN for those without a match and for the gallery."""
    queries, searched = ~is_gallery, is_gallery if is_gallery.any() else np.ones(len(labels), bool)
    values, codes = np.unique(labels, return_inverse=True)
    matches = np.bincount(codes[searched], minlength=len(values))[codes] - (not is_gallery.any())
    if matches[queries].max(initial=0) > neighbours.shape[1]:  # R reaches beyond the kept neighbours
        precision = np.full(len(labels), np.nan)
        gallery = (embeddings[searched], labels[searched]) if is_gallery.any() else (None, None)
        scores = retrieval(embeddings[queries], labels[queries], gallery=gallery[0], gallery_labels=gallery[1], ks=(1,))
        precision[queries] = scores.per_query_average_precision
        return precision
    return neighbour_lists.average_precision(_right(labels, neighbours), np.where(queries, matches, 0))
