"""Reading of embeddings, labels and metadata from files; the format is found by content and suffix."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets.source import SourceFile, source_file
from dmlcore.data.embedding_sets.table import Vectors, VectorTable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "LABEL_FORMATS", "VectorTable", "Vectors", "from_arrays", "read", "read_columns", "read_labelled"]

FORMATS = (".npy", ".npz", ".parquet", ".arrow", ".feather", ".csv", ".tsv", ".safetensors")
LABEL_FORMATS = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".npy", ".txt")

_MAGIC = {b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"PAR1": ".parquet", b"ARROW1": ".arrow"}
_SAME = {".feather": ".arrow", ".ipc": ".arrow", ".arrows": ".arrow", ".tsv": ".csv", ".tab": ".csv", ".pq": ".parquet"}
_BINARY = (".npy", ".npz", ".parquet")  # formats that their first bytes identify
_FOREIGN = {
    b"\x80": "a pickle, which can execute code when it is read; save the array with numpy.save or as Parquet",
    b"\x89HDF": "an HDF5 file; save the array with numpy.save or as Parquet",
    b"\x1f\x8b": "compressed with gzip; unpack it",
    b"FEA1": "a Feather file of version 1; save it as version 2",
}


def read(path: Path | str, *, vectors: str | None = None) -> VectorTable:
    """Open a file of embeddings; vectors are read later, in chunks, and nothing is unpickled.

    Args:
        path: A .npy, .npz, .parquet, .arrow, .feather, .csv, .tsv or .safetensors file.
        vectors: Name of the array or column with the embeddings; None chooses the only candidate.

    Returns:
        Vectors (N, D) and the other columns of the file.

    Raises:
        DataError: If the file is missing, damaged or of another format, or if its contents are not embeddings; the
            message names file, row (counted from 1 without the header), column and value, and a remedy.
    """
    source, form = _identified(path, FORMATS)
    if form == ".npy":
        _refuse_name(vectors, source)
    _require_pyarrow()
    from dmlcore.data.embedding_sets import ipc, npz, parquet, raw, text

    if form == ".npy":
        return raw.npy_table(source)
    read_form = {
        ".npz": npz.read_npz,
        ".parquet": parquet.read_parquet,
        ".arrow": ipc.read_ipc,
        ".csv": text.read_csv,
        ".safetensors": raw.read_safetensors,
    }[form]
    return read_form(source, vectors)


def read_columns(path: Path | str) -> pa.Table:
    """Return the columns of a file of labels and metadata without vectors.

    Args:
        path: A .csv, .tsv, .parquet, .arrow or .feather file, a one-dimensional .npy array, or a .txt file with one
            label per line; the latter two give the column "label". Columns of lists are left out.

    Raises:
        DataError: If the file is missing, damaged or of another format, or has no usable column.
    """
    source, form = _identified(path, LABEL_FORMATS)
    _require_pyarrow()
    from dmlcore.data.embedding_sets import ipc, parquet, text

    if form == ".npy":
        table = _labels(source)
    elif form == ".txt":
        table = text.read_lines(source)
    elif form == ".csv":
        table = text.read_csv_columns(source)
    else:
        table, _ = (parquet.read_parquet_columns if form == ".parquet" else ipc.read_ipc_columns)(source)
    if not table.num_columns or not table.num_rows:
        raise DataError(
            f"{source.name} has {table.num_rows:,} rows and no usable column; give a column of text or numbers"
            if not table.num_columns
            else f"{source.name} has no rows; at least one is needed"
        )
    return table


def read_labelled(path: Path | str, labels: Path | str | None = None, *, vectors: str | None = None) -> VectorTable:
    """Open a file of embeddings, and add the columns of a second file with one row per vector, in the same order.

    Args:
        path: File of embeddings, see `read`.
        labels: File of labels and metadata, see `read_columns`; None if there is none.
        vectors: Name of the array or column with the embeddings; None chooses the only candidate.

    Raises:
        DataError: As `read` and `read_columns`, or if the numbers of rows differ or a column exists in both files.
    """
    table = read(path, vectors=vectors)
    return table if labels is None else table.with_columns(read_columns(labels), Path(labels).name)


def from_arrays(vectors: Any = None, columns: Any = None, source: str = "arrays") -> VectorTable:
    """Return a table of embeddings from objects in memory; see `memory.from_arrays` for arguments and errors."""
    _require_pyarrow()
    from dmlcore.data.embedding_sets import memory

    return memory.from_arrays(vectors, columns, source)


def _labels(source: SourceFile) -> pa.Table:
    import pyarrow as pa

    from dmlcore.data.embedding_sets import raw

    array = raw.read_npy(source)
    if len(array.shape) != 1:
        size = " x ".join(map(str, array.shape[:8]))
        raise DataError(f"{source.name} has {len(array.shape)} axes ({size}); labels need one: one value per row")
    return pa.table({"label": raw.as_column(array.values(), source.name)})


def _identified(path: Path | str, accepted: tuple[str, ...]) -> tuple[SourceFile, str]:
    """Return the file and its format as the first suffix of that format; raise DataError for any other format."""
    source = source_file(path)
    with source.open() as file:
        start = file.read(8)
    suffix = Path(source.name).suffix.lower()
    form = next((form for magic, form in _MAGIC.items() if start.startswith(magic)), _SAME.get(suffix, suffix))
    for magic, what in _FOREIGN.items():
        if start.startswith(magic) and suffix != ".safetensors":
            raise DataError(f"{source.name} is {what}")
    if form not in accepted:
        what = f"the format {form}" if form else "no suffix"
        raise DataError(f"{source.name} has {what}; supported formats: {', '.join(accepted)}")
    expected = next((magic for magic, other in _MAGIC.items() if other == form), b"")
    if form in _BINARY and not start.startswith(expected):
        raise DataError(
            f"{source.name} is not a {form} file, although its name ends in {suffix}; give it the suffix of its "
            f"format, one of {', '.join(accepted)}"
        )
    return source, form


def _refuse_name(vectors: str | None, source: SourceFile) -> None:
    if vectors is not None:
        raise DataError(f"{source.name} holds a single array without a name; leave out --vectors {vectors}")


def _require_pyarrow() -> None:
    if find_spec("pyarrow") is None:
        raise DataError("embedding sets need the package pyarrow; install it with: pip install pyarrow")
