"""Cells that hold vectors, types of columns, and malformed CSV files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlcore.data import DataError
from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.text import parse_vector
from tests.data.embedding_sets import samples


@pytest.mark.parametrize(
    "cell", ["[0.5, -2, 3e0]", "0.5 -2 3", "0.5;-2;3", "[0.5 -2.\n 3. ]", "(0.5, -2, 3)", " 0.5  -2  3 ", "[0.5,-2,3]"]
)
def test_a_cell_is_a_list_of_numbers(cell: str) -> None:
    values = parse_vector(cell, "a.csv")
    assert values.dtype == np.float32
    assert values.tolist() == [0.5, -2, 3]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("", "here is empty; give every row a vector, or remove it"),
        ("[0.1, x]", "here: '[0.1, x]' is not a list of numbers such as \"[0.1, 0.2]\"; correct this cell"),
        ("[[0.1, 2]]", "here: '[[0.1, 2]]' is not a list of numbers such as \"[0.1, 0.2]\"; correct this cell"),
        (
            "[0.1 ... 0.2]",
            "here: '[0.1 ... 0.2]' is abbreviated with '...'; write the vectors with .tolist() or with "
            "numpy.set_printoptions(threshold=sys.maxsize)",
        ),
    ],
)
def test_any_other_cell_is_named(cell: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        parse_vector(cell, "here")
    assert str(raised.value) == message


def test_a_column_of_separated_numbers_is_found_among_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text;v\na b;"1 2"\nc d;"3 4"\n')
    table = files.read(tmp_path / "a.csv")
    assert np.concatenate(list(table.vectors.chunks(1))).tolist() == [[1, 2], [3, 4]]
    assert table.columns.to_pydict() == {"text": ["a b", "c d"]}


def test_columns_are_typed_without_losing_information(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",whole,code,real,text,missing,none\n0,1,007,1.5,x,,\n1,-2,008,1e3,3,4,\n")
    columns = files.read_columns(tmp_path / "a.csv")
    assert columns.to_pydict() == {
        "index": [0, 1],
        "whole": [1, -2],
        "code": ["007", "008"],
        "real": [1.5, 1000.0],
        "text": ["x", "3"],
        "missing": [None, 4],
        "none": ["", ""],
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "v,n\n",
            "a.csv has no column of embeddings, which is one list of numbers per row; it has v (text or single "
            "numbers), n (text or single numbers)",
        ),
        (
            "1 2,a\n",
            "a.csv has no column of embeddings, which is one list of numbers per row; it has 1 2 (text or single "
            "numbers), a (text or single numbers)",
        ),
        ("1,2\n", "a.csv: the first line must hold the names of the columns, but column 1 is '1'; add a header"),
        (
            '"[1, 2]"\n',
            "a.csv: the first line must hold the names of the columns, but column 1 is '[1, 2]'; add a header",
        ),
        ("a,,b\n", "a.csv: column 2 has no name; write one into the first line"),
        ("a,b,a\n", "a.csv has several columns named a; rename them"),
        (
            'v,n\n"[1,2]",1\n[1,2],2\n',
            "a.csv, row 2 has 3 cells, but the header has 2; put cells that contain the separator in quotes",
        ),
        (
            'v\n"[1,2]"\n"[1,2,3]"\n',
            "a.csv, column v, row 2 has 3 values, but row 1 has 2; embeddings must have the same length",
        ),
        (
            'v\n"[1,2]"\n' * 1 + '"[1,2]"\n' * 6 + '"[1,b]"\n',
            "a.csv, column v, row 8: '[1,b]' is not a list of numbers such as \"[0.1, 0.2]\"; correct this cell",
        ),
    ],
)
def test_a_malformed_file_is_named(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError) as raised:
        list(files.read(tmp_path / "a.csv").vectors.chunks(4))
    assert str(raised.value) == message


def test_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes('label,v\ncafé,"[1,2]"\n'.encode("latin-1"))
    with pytest.raises(
        DataError, match=r"^a\.csv, line 2: byte 0xe9 is not UTF-8; save the file in the encoding UTF-8$"
    ):
        files.read(tmp_path / "a.csv")


def test_blank_lines_of_one_column_are_empty_cells_except_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label\na\n\nb\n\n\n")
    assert files.read_columns(tmp_path / "a.csv")["label"].to_pylist() == ["a", "", "b"]


def test_cells_with_line_breaks_and_quotes_survive(tmp_path: Path) -> None:
    samples.write_csv(tmp_path / "a.csv", samples.vectors(), lambda row: str(row))  # numpy breaks the lines
    table = files.read(tmp_path / "a.csv")
    assert np.allclose(np.concatenate(list(table.vectors.chunks(9))), samples.vectors(), rtol=1e-6)
