"""Small files of embeddings in every format, for tests."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save_file

ROWS, WIDTH = 60, 8


def vectors(dtype: str = "float32", rows: int = ROWS, width: int = WIDTH) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(rows, width)).astype(dtype)


def labels(rows: int = ROWS) -> list[str]:
    return [f"class {row % 6}" for row in range(rows)]


def lists(values: np.ndarray, kind: str = "list") -> pa.Array:
    """Return the rows of a matrix as Arrow lists of kind "list", "large" or "fixed"."""
    flat = pa.array(values.ravel())
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    offsets = np.arange(len(values) + 1) * values.shape[1]
    if kind == "large":
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), flat)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


def table(values: np.ndarray, kind: str = "list") -> pa.Table:
    rows = len(values)
    return pa.table({"vector": lists(values, kind), "label": labels(rows), "weight": np.arange(rows) / 4})


def write_ipc(
    path: Path, content: pa.Table, *, stream: bool = False, compression: str | None = None, rows: int = 25
) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    opened = (pa.ipc.new_stream if stream else pa.ipc.new_file)(path, content.schema, options=options)
    with opened as writer:
        writer.write_table(content, max_chunksize=rows)


def write_csv(path: Path, values: np.ndarray, cell=lambda row: json.dumps(row.tolist()), delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["label", "vector", "weight"])
        for number, (label, row) in enumerate(zip(labels(len(values)), values, strict=True)):
            writer.writerow([label, cell(row), number / 4])


def write(path: Path, values: np.ndarray) -> Path:
    """Write `values`, and in most formats also labels, in the format of the suffix of `path`."""
    match path.suffix:
        case ".npy":
            np.save(path, values)
        case ".npz":
            np.savez_compressed(path, vector=values, label=np.array(labels(len(values))))
        case ".parquet":
            pq.write_table(table(values), path, row_group_size=25)
        case ".arrow":
            write_ipc(path, table(values))
        case ".feather":
            write_ipc(path, table(values, "fixed"), compression="lz4")
        case ".csv":
            write_csv(path, values)
        case ".tsv":
            write_csv(path, values, lambda row: " ".join(map(repr, row.tolist())), "\t")
        case ".safetensors":
            save_file({"vector": values, "weight": np.arange(len(values))}, path)
    return path
