"""Reading of embeddings, labels and metadata: round trips of all formats, and exact messages."""

from __future__ import annotations

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


def refused(path: Path, message: str, **options: str) -> None:
    with pytest.raises(DataError) as raised:
        whole(files.read(path, **options))
    assert str(raised.value) == message


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
    values = samples.vectors()
    np.savez(tmp_path / "a.npz", clip=values, dino=2 * values, label=np.arange(samples.ROWS))
    refused(
        tmp_path / "a.npz",
        "a.npz has 2 arrays that may be the embeddings: clip (60 x 8 float32), dino (60 x 8 float32); choose one with "
        "--vectors NAME",
    )
    assert np.array_equal(whole(files.read(tmp_path / "a.npz", vectors="dino")), 2 * values)
    refused(
        tmp_path / "a.npz",
        "a.npz has no array vit; it has clip (60 x 8 float32), dino (60 x 8 float32), label (60 int64)",
        vectors="vit",
    )
    refused(
        tmp_path / "a.npz",
        "a.npz: array label cannot be the embeddings (60 int64); embeddings are one list of numbers per row. "
        "Candidates: clip (60 x 8 float32), dino (60 x 8 float32)",
        vectors="label",
    )
    two = samples.table(values).append_column("other", samples.lists(values))
    pq.write_table(two, tmp_path / "a.parquet")
    refused(
        tmp_path / "a.parquet",
        "a.parquet has 2 columns that may be the embeddings: vector (list<element: float>), other (list<element: "
        "float>); choose one with --vectors NAME",
    )
    chosen = files.read(tmp_path / "a.parquet", vectors="other")
    assert chosen.columns.column_names == ["label", "weight"]
    pq.write_table(two.select(["label"]), tmp_path / "b.parquet")
    refused(
        tmp_path / "b.parquet",
        "b.parquet has no column of embeddings, which is one list of numbers per row; it has label (string)",
    )
    np.save(tmp_path / "a.npy", values)
    refused(tmp_path / "a.npy", "a.npy holds a single array without a name; leave out --vectors clip", vectors="clip")


OBJECTS = "a.npy contains Python objects; save it as plain numbers"
OTHER_TYPE = "embeddings are float16, float32, float64 or integers: convert them, for example with .astype('float32')"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[{}]]), OBJECTS),
        (np.ones((2, 2), complex), f"a.npy contains complex numbers; {OTHER_TYPE}"),
        (np.ones((2, 2), bool), f"a.npy contains true/false values; {OTHER_TYPE}"),
        (np.array([["a"]]), f"a.npy contains text; {OTHER_TYPE}"),
        (np.ones((2, 2), np.longdouble), f"a.npy contains values of type {np.dtype(np.longdouble)}; {OTHER_TYPE}"),
        (np.ones((0, 4)), "a.npy has 0 rows and 4 dimensions; at least one of each is needed"),
        (np.ones((4, 0)), "a.npy has 4 rows and 0 dimensions; at least one of each is needed"),
        (np.ones(4), "a.npy has 1 axis (4); embeddings need two: one row per sample"),
        (np.ones((2, 3, 4)), "a.npy has 3 axes (2 x 3 x 4); embeddings need two: one row per sample"),
        (
            np.ones((2, 65_537), np.float16),
            "a.npy has 65,537 dimensions, the limit is 65,536; transpose it or save fewer",
        ),
    ],
)
def test_an_unusable_array_is_named(values: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", values)
    refused(tmp_path / "a.npy", message)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("value", "shown"),
    [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf"), (3e18, "3e+18, above 1e18 in magnitude,")],
)
def test_unusable_values_are_named_by_row_and_dimension(suffix: str, value: float, shown: str, tmp_path: Path) -> None:
    values = samples.vectors()
    values[41, 2] = value
    path = samples.write(tmp_path / f"a{suffix}", values)
    with pytest.raises(DataError) as raised:
        whole(files.read(path))
    assert str(raised.value).startswith(f"a{suffix}")
    ending = f", row 42: {shown} in dimension 3 of 8; correct or remove this row"
    assert str(raised.value).endswith(ending)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_zero_and_vanishing_vectors_are_named_by_row(dtype: str, tmp_path: Path) -> None:
    values = samples.vectors(dtype)
    values[1] = 0 if dtype == "float16" else 1e-30
    np.save(tmp_path / "a.npy", values)
    refused(
        tmp_path / "a.npy",
        "a.npy, row 2: all 8 values are 0, so that its cosine similarity is undefined; remove this row",
    )


def test_infinite_half_precision_values_are_named(tmp_path: Path) -> None:
    values = samples.vectors("float16")
    values[0, 7] = np.inf
    np.save(tmp_path / "a.npy", values)
    refused(tmp_path / "a.npy", "a.npy, row 1: inf in dimension 8 of 8; correct or remove this row")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0], [1.0, 2.0], [1.0]], "row 3 has 1 values, but row 1 has 2; embeddings must have the same length"),
        ([[1.0, 2.0], None], "row 2 is empty; give every row a vector, or remove it"),
        ([None, [1.0, 2.0]], "row 1 is empty; give every row a vector, or remove it"),
        ([[1.0, 2.0], [3.0, None]], "row 2: dimension 2 is empty; correct or remove this row"),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_ragged_or_missing_row_is_named(rows: list, message: str, suffix: str, tmp_path: Path) -> None:
    content = pa.table({"v": pa.array(rows, pa.list_(pa.float32()))})
    path = tmp_path / f"a{suffix}"
    pq.write_table(content, path) if suffix == ".parquet" else samples.write_ipc(path, content)
    refused(path, f"a{suffix}, column v, {message}")


def test_truncated_and_lengthened_arrays_are_refused_before_reading(tmp_path: Path) -> None:
    path = samples.write(tmp_path / "a.npy", samples.vectors())
    content = path.read_bytes()
    head = "a.npy: its header says 60 x 8 values of type float32, which take 1,920 bytes, but the file has"
    path.write_bytes(content[:-10])
    refused(path, f"{head} 1,910; it is incomplete: save it again")
    path.write_bytes(content + b"more")
    refused(path, f"{head} 1,924; it is damaged: save it again")
    path.write_bytes(content.replace(b"(60, 8)", b"(10**9)"))
    with pytest.raises(DataError, match=r"a\.npy cannot be read as a NumPy array \(\.npy\) \(.*\); it is damaged"):
        files.read(path)


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".arrow", ".safetensors"])
def test_a_truncated_file_is_refused(suffix: str, tmp_path: Path) -> None:
    content = samples.write(tmp_path / f"a{suffix}", samples.vectors()).read_bytes()
    path = tmp_path / f"b{suffix}"
    for size in (len(content) - 1000, len(content) // 2, 12):
        path.write_bytes(content[:size])
        with pytest.raises(DataError, match=rf"^b{suffix}"):
            whole(files.read(path))


def test_a_bomb_is_refused_by_its_declared_size(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", v=np.ones((300_000, 128), np.float32))
    size = (tmp_path / "a.npz").stat().st_size
    refused(
        tmp_path / "a.npz",
        f"a.npz: the array v would take 153,600,128 bytes, more than 100 times its {size:,} bytes; the file is damaged "
        "or hostile: save the embeddings again",
    )


def test_what_is_no_file_of_embeddings_is_named(tmp_path: Path) -> None:
    formats = ".npy, .npz, .parquet, .arrow, .feather, .csv, .tsv, .safetensors"
    refused(tmp_path / "no.npy", f"{tmp_path}/no.npy: no such file; check the path")
    refused(tmp_path, f"{tmp_path.name} is a folder; give a file that holds embeddings")
    os.mkfifo(tmp_path / "pipe.npy")
    refused(tmp_path / "pipe.npy", "pipe.npy is not a regular file; give a file that holds embeddings")
    for name, content, message in (
        ("empty.npy", b"", "empty.npy is empty; save the embeddings again"),
        ("a.xlsx", b"something", f"a.xlsx has the format .xlsx; supported formats: {formats}"),
        ("none", b"something", f"none has no suffix; supported formats: {formats}"),
        (
            "a.pkl",
            b"\x80\x04K\x01.",
            "a.pkl is a pickle, which can execute code when it is read; save the array with numpy.save or as Parquet",
        ),
        (
            "text.npy",
            b"label,vector\n",
            f"text.npy is not a .npy file, although its name ends in .npy; give it the suffix of its format, one of "
            f"{formats}",
        ),
        ("a.csv.gz", b"\x1f\x8b\x08...", "a.csv.gz is compressed with gzip; unpack it"),
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
        samples.write(tmp_path / f"a{suffix}", samples.vectors(rows=70))
        message = re.escape(f"a{suffix} changed while it was read; wait until it is complete and try again")
        with pytest.raises(DataError, match=message):
            whole(table)


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
    message = "labels.csv has 5 rows, but a.npz has 60 vectors; give one row per vector, in the same order"
    with pytest.raises(DataError, match=re.escape(message)):
        table.with_columns(pa.table({"y": range(5)}), "labels.csv")
    message = "labels.csv and a.npz both have the columns label; rename or remove them"
    with pytest.raises(DataError, match=re.escape(message)):
        table.with_columns(pa.table({"label": range(60)}), "labels.csv")
    assert table.with_columns(pa.table({"y": range(60)}), "labels.csv").columns.column_names == ["label", "y"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"label\n", "a.csv has no rows; at least one is needed"),
        ("a.txt", b"\n", "a.txt has no rows; at least one is needed"),
        ("a.txt", b"a\n\xff\n", "a.txt, line 2: byte 0xff is not UTF-8; save the file in the encoding UTF-8"),
        (
            "a.json",
            b"[1]",
            "a.json has the format .json; supported formats: .csv, .tsv, .parquet, .arrow, .feather, .npy, .txt",
        ),
    ],
)
def test_an_unusable_file_of_labels_is_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as raised:
        files.read_columns(tmp_path / name)
    assert str(raised.value) == message


def test_a_matrix_is_no_column_of_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    message = "a.npy has 2 axes (3 x 2); labels need one: one value per row"
    with pytest.raises(DataError, match=re.escape(message)):
        files.read_columns(tmp_path / "a.npy")
