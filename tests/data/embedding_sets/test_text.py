"""Cells that hold vectors, types of columns, and malformed CSV files."""

import re
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
        ("", "here is empty"),
        ("[0.1, x]", "here: '[0.1, x]' is not a list of numbers"),
        ("[[0.1, 2]]", "here: '[[0.1, 2]]' is not a list of numbers"),
        ("[0.1 ... 0.2]", "here: '[0.1 ... 0.2]' is abbreviated with '...'; write the vectors with .tolist()"),
    ],
)
def test_any_other_cell_is_named(cell: str, message: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(message)}"):
        parse_vector(cell, "here")


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
        ("v,n\n", " has no column of embeddings"),
        ("1 2,a\n", " has no column of embeddings"),
        ("1,2\n", ": the first line must hold the names of the columns, but column 1 is '1'"),
        ('"[1, 2]"\n', ": the first line must hold the names of the columns, but column 1 is '[1, 2]'"),
        ("a,,b\n", ": column 2 has no name"),
        ("a,b,a\n", " has several columns named a"),
        ('v,n\n"[1,2]",1\n[1,2],2\n', ", row 2 has 3 cells, but the header has 2"),
        ('v\n"[1,2]"\n"[1,2,3]"\n', ", column v, row 2 has 3 values, but row 1 has 2"),
        ("v\n" + '"[1,2]"\n' * 7 + '"[1,b]"\n', ", column v, row 8: '[1,b]' is not a list of numbers"),
        ('label,v\ncafé,"[1,2]"\n', ", line 2: byte 0xe9 is not UTF-8"),
    ],
)
def test_a_malformed_file_is_named(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=rf"^a\.csv{re.escape(message)}"):
        list(files.read(tmp_path / "a.csv").vectors.chunks(4))


def test_blank_lines_of_one_column_are_empty_cells_except_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label\na\n\nb\n\n\n")
    assert files.read_columns(tmp_path / "a.csv")["label"].to_pylist() == ["a", "", "b"]


def test_cells_with_line_breaks_and_quotes_survive(tmp_path: Path) -> None:
    samples.write_csv(tmp_path / "a.csv", samples.vectors(), lambda row: str(row))  # numpy breaks the lines
    table = files.read(tmp_path / "a.csv")
    assert np.allclose(np.concatenate(list(table.vectors.chunks(9))), samples.vectors(), rtol=1e-6)
