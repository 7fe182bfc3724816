"""Reading of embeddings, labels and metadata: round trips of all formats, and exact messages."""

import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from dmlcore.data import DataError
from dmlcore.data.embedding_sets import files
from tests.data.embedding_sets import samples

SUFFIXES = (".npy", ".npz", ".parquet", ".arrow", ".feather", ".csv", ".tsv", ".safetensors")


def whole(table: files.VectorTable, rows: int = 7) -> np.ndarray:
    chunks = list(table.vectors.chunks(rows))
    assert all(len(chunk) <= rows and chunk.flags.c_contiguous for chunk in chunks)
    values = np.concatenate(chunks)
    assert (values.shape, values.dtype) == (table.vectors.shape, table.vectors.dtype)
    return values


def read_whole(path: Path, **options: str) -> np.ndarray:
    return whole(files.read(path, **options))


def refused(path: Path, message: str, read=read_whole, **options: str) -> None:
    """Assert that reading raises DataError with the name of the file and `message`."""
    with pytest.raises(DataError) as raised:
        read(path, **options)
    assert path.name in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_format_and_dtype_is_read_as_written(suffix: str, dtype: str, tmp_path: Path) -> None:
    values = samples.vectors(dtype)
    table = files.read(samples.write(tmp_path / f"a{suffix}", values))
    assert table.source == f"a{suffix}"
    read = whole(table)
    if suffix in (".csv", ".tsv"):
        values = values.astype(np.float32)
    assert read.dtype == values.dtype
    assert np.array_equal(read, values)
    assert np.array_equal(whole(table, 1000), values), "the vectors can be read twice"
    if "label" in table.columns.column_names:
        assert table.columns["label"].to_pylist() == samples.labels()
    if "weight" in table.columns.column_names and suffix != ".safetensors":
        assert table.columns["weight"].to_pylist() == [row / 4 for row in range(samples.ROWS)]
    assert "vector" not in table.columns.column_names


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
@pytest.mark.parametrize("form", ["parquet", "file", "stream", "compressed stream"])
def test_every_kind_of_list_is_read(kind: str, form: str, tmp_path: Path) -> None:
    values, path = samples.vectors("float16"), tmp_path / ("a.parquet" if form == "parquet" else "a.arrow")
    content = samples.table(values, kind).slice(10, 40)  # offsets that do not begin at 0
    if form == "parquet":
        pq.write_table(content, path, row_group_size=13)
    else:
        compression = "zstd" if "compressed" in form else None
        samples.write_ipc(path, content, stream="stream" in form, compression=compression)
    table = files.read(path)
    assert np.array_equal(whole(table), values[10:50])
    assert table.columns["label"].to_pylist() == samples.labels()[10:50]


def test_arrays_of_any_order_are_read(tmp_path: Path) -> None:
    values = samples.vectors()
    for number, stored in enumerate(
        (np.asfortranarray(values), values.astype(">f4"), np.asfortranarray(values, ">f8"))
    ):
        np.save(tmp_path / f"{number}.npy", stored)
        assert np.array_equal(whole(files.read(tmp_path / f"{number}.npy")), values)
        np.savez_compressed(tmp_path / f"{number}.npz", v=stored)
        assert np.array_equal(whole(files.read(tmp_path / f"{number}.npz")), values)


def test_integers_and_bfloat16_become_float32(tmp_path: Path) -> None:
    values = np.arange(-12, 12, dtype=np.int8).reshape(6, 4)
    np.save(tmp_path / "a.npy", values)
    table = files.read(tmp_path / "a.npy")
    assert table.notes == ("a.npy: int8 values were converted to float32",)
    assert np.array_equal(whole(table), values.astype(np.float32))
    pq.write_table(pa.table({"v": samples.lists(values)}), tmp_path / "a.parquet")
    assert np.array_equal(whole(files.read(tmp_path / "a.parquet")), values.astype(np.float32))
    tensor = torch.tensor(samples.vectors()).bfloat16()
    save_file({"v": tensor}, tmp_path / "a.safetensors")
    assert np.array_equal(whole(files.read(tmp_path / "a.safetensors")), tensor.float().numpy())


def test_columns_of_numpy_archives_keep_their_types(tmp_path: Path) -> None:
    rows = 5
    columns = {
        "text": np.array(["a", "bé", "", "d", "e"]),
        "bytes": np.array([b"a", b"b", b"c", b"d", b"e"]),
        "whole": np.arange(rows, dtype=">i4"),
        "half": np.arange(rows, dtype=np.float16),
        "flag": np.arange(rows) > 2,
        "day": np.array(["2024-01-01"] * rows, dtype="M8[D]"),
    }
    np.savez(tmp_path / "a.npz", v=samples.vectors(rows=rows), other=np.zeros(3), **columns)
    table = files.read(tmp_path / "a.npz")
    assert table.notes == ("a.npz: left out other (3 float64)",)
    read = table.columns.to_pydict()
    assert read["text"] == ["a", "bé", "", "d", "e"]
    assert read["bytes"] == list("abcde")
    assert (read["whole"], read["half"]) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    assert read["flag"] == [False, False, False, True, True]
    assert str(read["day"][0]) == "2024-01-01"


def test_several_candidates_are_listed_and_can_be_chosen(tmp_path: Path) -> None:
    values, path = samples.vectors(), tmp_path / "a.npz"
    np.savez(path, clip=values, dino=2 * values, label=np.arange(samples.ROWS))
    refused(path, "2 arrays that may be the embeddings: clip (60 x 8 float32), dino (60 x 8 float32); choose")
    assert np.array_equal(whole(files.read(path, vectors="dino")), 2 * values)
    refused(path, "no array vit; it has clip (60 x 8 float32)", vectors="vit")
    refused(path, "array label cannot be the embeddings (60 int64)", vectors="label")
    two = samples.table(values).append_column("other", samples.lists(values))
    pq.write_table(two, tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "2 columns that may be the embeddings: vector (list<element: float>), other (list")
    chosen = files.read(tmp_path / "a.parquet", vectors="other")
    assert chosen.columns.column_names == ["label", "weight"]
    pq.write_table(two.select(["label"]), tmp_path / "b.parquet")
    refused(tmp_path / "b.parquet", "no column of embeddings")
    np.save(tmp_path / "a.npy", values)
    refused(tmp_path / "a.npy", "leave out --vectors clip", vectors="clip")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[{}]]), "Python objects"),
        (np.ones((2, 2), complex), "complex numbers; embeddings are float16, float32, float64 or integers: convert"),
        (np.ones((2, 2), bool), "true/false values"),
        (np.array([["a"]]), "text"),
        (np.ones((2, 2), np.longdouble), f"values of type {np.dtype(np.longdouble)}"),
        (np.ones((0, 4)), "0 rows and 4 dimensions"),
        (np.ones((4, 0)), "4 rows and 0 dimensions"),
        (np.ones(4), "1 axis (4); embeddings need two"),
        (np.ones((2, 3, 4)), "3 axes (2 x 3 x 4); embeddings need two"),
        (np.ones((2, 65_537), np.float16), "65,537 dimensions, the limit is 65,536"),
    ],
)
def test_an_unusable_array_is_named(values: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", values)
    refused(tmp_path / "a.npy", message)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf"), (3e18, "3e+18")])
def test_unusable_values_are_named_by_row_and_dimension(suffix: str, value: float, shown: str, tmp_path: Path) -> None:
    values = samples.vectors()
    values[41, 2] = value
    path = samples.write(tmp_path / f"a{suffix}", values)
    with pytest.raises(DataError, match=rf"row 42: {re.escape(shown)}.* in dimension 3 of 8"):
        whole(files.read(path))


@pytest.mark.parametrize(
    ("dtype", "row", "message"),
    [
        ("float16", 0, "row 2: all 8 values are 0"),
        ("float32", 1e-30, "row 2: all 8 values are 0"),
        ("float64", 1e-30, "row 2: all 8 values are 0"),
        ("float16", np.inf, "row 2: inf in dimension 1 of 8"),
    ],
)
def test_vanishing_and_infinite_vectors_are_named_by_row(dtype: str, row: float, message: str, tmp_path: Path) -> None:
    values = samples.vectors(dtype)
    values[1] = row
    np.save(tmp_path / "a.npy", values)
    refused(tmp_path / "a.npy", message)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0], [1.0, 2.0], [1.0]], "column v, row 3 has 1 values, but row 1 has 2"),
        ([[1.0, 2.0], None], "column v, row 2 is empty"),
        ([None, [1.0, 2.0]], "column v, row 1 is empty"),
        ([[1.0, 2.0], [3.0, None]], "column v, row 2: dimension 2 is empty"),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_ragged_or_missing_row_is_named(rows: list, message: str, suffix: str, tmp_path: Path) -> None:
    content = pa.table({"v": pa.array(rows, pa.list_(pa.float32()))})
    path = tmp_path / f"a{suffix}"
    pq.write_table(content, path) if suffix == ".parquet" else samples.write_ipc(path, content)
    refused(path, message)


def test_truncated_and_lengthened_arrays_are_refused_before_reading(tmp_path: Path) -> None:
    path = samples.write(tmp_path / "a.npy", samples.vectors())
    content = path.read_bytes()
    for damaged, message in (
        (content[:-10], "which take 1,920 bytes, but the file has 1,910"),
        (content + b"more", "but the file has 1,924"),
        (content.replace(b"(60, 8)", b"(10**9)"), "cannot be read as a NumPy array"),
    ):
        path.write_bytes(damaged)
        refused(path, message)


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".arrow", ".safetensors"])
def test_a_truncated_file_is_refused(suffix: str, tmp_path: Path) -> None:
    path = samples.write(tmp_path / f"a{suffix}", samples.vectors())
    content = path.read_bytes()
    for size in (len(content) - 1000, len(content) // 2, 12):
        path.write_bytes(content[:size])
        refused(path, "")


def test_a_bomb_is_refused_by_its_declared_size(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", v=np.ones((300_000, 128), np.float32))
    refused(tmp_path / "a.npz", "the array v would take 153,600,128 bytes, more than 100 times its")


def test_what_is_no_file_of_embeddings_is_named(tmp_path: Path) -> None:
    refused(tmp_path / "no.npy", "no such file")
    refused(tmp_path, "is a folder")
    os.mkfifo(tmp_path / "pipe.npy")
    refused(tmp_path / "pipe.npy", "not a regular file")
    for name, content, message in (
        ("empty.npy", b"", "is empty"),
        ("a.xlsx", b"something", "format .xlsx; supported formats: .npy, .npz, .parquet, .arrow, .feather, .csv, .tsv"),
        ("none", b"something", "no suffix"),
        ("a.pkl", b"\x80\x04K\x01.", "is a pickle, which can execute code"),
        ("text.npy", b"label,vector\n", "is not a .npy file"),
        ("a.csv.gz", b"\x1f\x8b\x08...", "compressed with gzip"),
    ):
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, message)


def test_the_content_decides_if_the_suffix_is_wrong_and_links_are_followed(tmp_path: Path) -> None:
    values = samples.vectors()
    path = samples.write(tmp_path / "a.parquet", values).rename(tmp_path / "a.npy")
    assert np.array_equal(whole(files.read(path)), values)
    (tmp_path / "link.bin").symlink_to(path)
    assert np.array_equal(whole(files.read(tmp_path / "link.bin")), values)


def test_a_file_that_changes_between_two_passes_is_refused(tmp_path: Path) -> None:
    for suffix in (".npy", ".npz", ".parquet", ".arrow", ".csv"):
        table = files.read(samples.write(tmp_path / f"a{suffix}", samples.vectors()))
        path = samples.write(tmp_path / f"a{suffix}", samples.vectors(rows=70))
        refused(path, "changed while it was read", lambda path, table=table: whole(table))


def test_labels_are_read_from_every_format(tmp_path: Path) -> None:
    names = samples.labels(6)
    pq.write_table(pa.table({"label": names, "v": samples.lists(np.ones((6, 2)))}), tmp_path / "a.parquet")
    samples.write_ipc(tmp_path / "a.arrow", pa.table({"label": pa.array(names).dictionary_encode()}))
    np.save(tmp_path / "a.npy", np.array(names))
    (tmp_path / "a.txt").write_text("\n".join(names) + "\n\n")
    (tmp_path / "a.csv").write_text("label\n" + "\n".join(names) + "\n")
    (tmp_path / "a.tsv").write_text("\ufefflabel\tn\n" + "".join(f"{name}\t{at}\n" for at, name in enumerate(names)))
    for path in sorted(tmp_path.iterdir()):
        assert files.read_columns(path)["label"].to_pylist() == names, path.name
    assert files.read_columns(tmp_path / "a.tsv")["n"].to_pylist() == list(range(6))


def test_another_number_of_rows_or_a_repeated_column_is_named(tmp_path: Path) -> None:
    table = files.read(samples.write(tmp_path / "a.npz", samples.vectors()))
    for columns, message in (
        ({"y": range(5)}, "labels.csv has 5 rows, but a.npz has 60 vectors"),
        ({"label": range(60)}, "labels.csv and a.npz both have the columns label"),
    ):
        with pytest.raises(DataError, match=message):
            table.with_columns(pa.table(columns), "labels.csv")
    assert table.with_columns(pa.table({"y": range(60)}), "labels.csv").columns.column_names == ["label", "y"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"label\n", "no rows"),
        ("a.txt", b"\n", "no rows"),
        ("a.txt", b"a\n\xff\n", "line 2: byte 0xff is not UTF-8"),
        ("a.json", b"[1]", "format .json; supported formats: .csv, .tsv, .parquet, .arrow, .feather, .npy, .txt"),
    ],
)
def test_an_unusable_file_of_labels_is_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name, message, files.read_columns)


def test_a_matrix_is_no_column_of_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    refused(tmp_path / "a.npy", "2 axes (3 x 2); labels need one", files.read_columns)
