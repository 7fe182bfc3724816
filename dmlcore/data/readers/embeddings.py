"""Reader of embedding sets that `dmlcore.data.embedding_sets` has written; the inputs are the imported vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlcore.data.dataset import Description, Samples, reader
from dmlcore.typing import Array, Pixels, Singles

if TYPE_CHECKING:
    from dmlcore.data.dataset import ImageFile
    from dmlcore.data.embedding_sets.stored import EmbeddingSet

MAX_TEXT = 2**26  # maximum size in bytes of a metadata column of text as a NumPy array

INFO = Description(
    name="embeddings",
    title="Embedding set",
    sentence="Imported embeddings of your own; without a split column, the first half of the classes trains.",
    citation="Your own embeddings.",
    kind="vectors",
    split="classes",
    needs_files=True,
    markers=("set.json",),
)


class MappedInputs:
    """Mapped vectors (N, D) as network inputs: rows are converted to float32 when they are accessed.

    Attributes:
        identity_of: Function that returns the bytes that identify a sample, whatever its vector; see
            `dmlcore.data.identities`.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, vectors: Array, identity_of: Callable[[int], bytes]) -> None:
        self._vectors, self.identity_of = vectors, identity_of
        self.shape: tuple[int, ...] = vectors.shape

    def __len__(self) -> int:
        return len(self._vectors)

    def __getitem__(self, index: Any, /) -> Singles:
        return np.array(self._vectors[index], dtype=np.float32)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read a stored embedding set; inputs are (N, D) float32, converted from the mapped vectors when indexed.

    Metadata columns become facts: whole numbers int64, other numbers float64, text as it is up to MAX_TEXT bytes.
    A set without labels has a single class. Raises DataError if the set is damaged.
    """
    from dmlcore.data.embedding_sets.stored import load  # imported here because pyarrow takes time to import

    stored = load(folder)
    facts, notes = _facts(stored)
    if not stored.labelled:
        notes += ("this set has no labels: import it again with a column of labels to train on it or to score it",)
    return Samples(
        inputs=MappedInputs(stored.vectors, _identity(stored)),
        labels=stored.labels,
        class_names=stored.class_names,
        train_classes=stored.train_classes,
        official_train=stored.official_train,
        keys=stored.ids,
        files=stored.images,
        image=None if stored.images is None else partial(_image, stored.images),
        notes=stored.notes + notes,
        facts=facts,
    )


def _identity(stored: EmbeddingSet) -> Callable[[int], bytes]:
    """Return a function that identifies a sample by its id or, without ids, by row, label and image name."""
    ids = stored.ids
    if ids is not None:
        return lambda index: f"id\0{ids[index]}".encode("utf-8", "surrogateescape")

    def identity(index: int) -> bytes:
        image = "" if stored.images is None else stored.images[index].name
        label = stored.class_names[stored.labels[index]]
        return f"row\0{index}\0{label}\0{image}".encode("utf-8", "surrogateescape")

    return identity


def _image(files: Sequence[ImageFile], index: int) -> Pixels:
    from dmlcore.data.files.images import thumbnail

    return thumbnail(files[index])


def _facts(stored: EmbeddingSet) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Return the metadata columns as arrays by name, and a note on columns of long text that are left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    roles, facts, long = stored.roles, {}, []
    for name in stored.columns.column_names:
        column = stored.columns.column(name)
        if name in (roles.label, roles.id, roles.image):
            continue
        kind = column.type
        if pa.types.is_boolean(kind) or (pa.types.is_integer(kind) and not column.null_count):
            column = pc.cast(column, pa.int64(), safe=False) if not column.null_count else column
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
            target = np.float64 if column.null_count or pa.types.is_floating(kind) else np.int64
            values = pc.cast(column, pa.float64(), safe=False) if target is np.float64 else column
            facts[name] = np.array(values.to_numpy(), dtype=target)
            continue
        text = pc.fill_null(pc.cast(column, pa.string()), "")
        longest = pc.max(pc.utf8_length(text)).as_py() or 1
        if 4 * longest * len(text) > MAX_TEXT:
            long.append(name)
        else:
            facts[name] = np.array(text.to_pylist(), dtype=f"U{longest}")
    return facts, (f"columns of long text are not shown: {', '.join(long)}",) if long else ()
