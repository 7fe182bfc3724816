"""Reading of CSV, TSV and text files: each cell of one column may hold a vector, as Renumics Spotlight writes it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets.source import SourceFile, reading, shown
from dmlcore.data.embedding_sets.table import Vectors, VectorTable, choose, require_columns, require_shape
from dmlcore.typing import Array, Singles

MAX_LINE = 2**23  # characters of a line and of a cell; 65,536 dimensions take about 1.3 million
BLOCK = 20_000  # rows whose cells are converted to Arrow at a time
PROBED = 5  # first rows in which columns of vectors are looked for
NO_VECTOR = "text or single numbers"


def read_csv(source: SourceFile, wanted: str | None) -> VectorTable:
    """Return the embeddings of a CSV or TSV file, in which the cells of one column hold lists of numbers.

    A cell is "[0.1, 0.2]", or numbers separated by spaces or semicolons. Columns of whole numbers become int64, other
    numbers float64, everything else text.

    Args:
        source: The file.
        wanted: Column with the embeddings; None chooses the only one that holds lists of numbers.

    Raises:
        DataError: If the file is malformed or the column of embeddings cannot be chosen.
    """
    with reading(source, "CSV"):
        rows = _rows(source)
        header = next(rows)
        probed = [row for _, row in zip(range(PROBED), rows, strict=False)]
        at = _vector_column(source.name, header, probed, wanted)
        label = f"{source.name}, column {header[at]}"
        if not probed:
            raise DataError(f"{label} has no rows; at least one is needed")
        width = len(parse_vector(probed[0][at], f"{label}, row 1"))
        columns, count = _columns(source, skip=at)
        shape = require_shape((count, width), label)

    def blocks(size: int) -> Iterator[Array]:
        with reading(source, "CSV"):
            again = _rows(source)
            next(again)
            block: list[Singles] = []
            for number, row in enumerate(again, start=1):
                vector = parse_vector(row[at], f"{label}, row {number:,}")
                if len(vector) != width:
                    raise DataError(
                        f"{label}, row {number:,} has {len(vector):,} values, but row 1 has {width:,}; embeddings must "
                        "have the same length"
                    )
                block.append(vector)
                if len(block) == size:
                    yield np.stack(block)
                    block = []
            if block:
                yield np.stack(block)

    return VectorTable(Vectors(shape, np.dtype(np.float32), label, blocks), columns, source.name)


def read_csv_columns(source: SourceFile) -> pa.Table:
    """Return all columns of a CSV or TSV file of labels and metadata."""
    with reading(source, "CSV"):
        return _columns(source)[0]


def read_lines(source: SourceFile) -> pa.Table:
    """Return the lines of a text file as the column "label", without empty lines at the end."""
    with reading(source, "text"):
        lines = [line.rstrip("\r\n") for line in _lines(source)]
        while lines and not lines[-1].strip():
            lines.pop()
        return pa.table({"label": _typed(pa.chunked_array([pa.array(lines, pa.string())]))})


def parse_vector(cell: str, label: str) -> Singles:
    """Return the numbers in a cell; raise DataError, which begins with `label`, if it does not hold a list of them."""
    text = cell.strip()
    if not text:
        raise DataError(f"{label} is empty; give every row a vector, or remove it")
    if "..." in text:
        raise DataError(
            f"{label}: {shown(text)} is abbreviated with '...'; write the vectors with .tolist() or with "
            "numpy.set_printoptions(threshold=sys.maxsize)"
        )
    try:
        values = _numbers(text)
    except (ValueError, TypeError, OverflowError, RecursionError):
        values = None
    if values is None or values.ndim != 1:
        raise DataError(f'{label}: {shown(text)} is not a list of numbers such as "[0.1, 0.2]"; correct this cell')
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _numbers(text: str) -> Array:
    if text.startswith("[") and "," in text:
        return np.array(json.loads(text), dtype=np.float64)
    if text[0] in "[(" and text[-1] in "])":
        text = text[1:-1]
    return np.array([float(word) for word in text.replace(",", " ").replace(";", " ").split()])


def _vector_column(source: str, header: list[str], rows: list[list[str]], wanted: str | None) -> int:
    """Return the number of the column with the embeddings, judged by the first rows."""
    bracketed, separated = [], []
    for number, name in enumerate(header):
        cells = [row[number].strip() for row in rows]
        if cells and all(cell.startswith("[") for cell in cells):
            bracketed.append(name)
        elif cells and all(_is_separated(cell) for cell in cells):
            separated.append(name)
    candidates = dict.fromkeys(bracketed or separated, "")
    if wanted in header:
        candidates[wanted] = ""
    others = {name: NO_VECTOR for name in header if name not in candidates}
    return header.index(choose(candidates, others, wanted, source, "column"))


def _is_separated(cell: str) -> bool:
    words = cell.replace(";", " ").split()
    return len(words) > 1 and all(map(_is_number, words))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _lines(source: SourceFile) -> Iterator[str]:
    """Yield the lines of a UTF-8 file with their ends; raise DataError for other encodings and endless lines."""
    with source.open() as binary:
        for number, line in enumerate(_bounded(binary), start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{source.name}, line {number:,}: byte 0x{line[error.start]:02x} is not UTF-8; save the file "
                    "in the encoding UTF-8"
                ) from None
            if len(line) > MAX_LINE:
                raise DataError(f"{source.name}, line {number:,} has more than {MAX_LINE:,} bytes; check the format")
            yield text


def _bounded(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(MAX_LINE + 1):
        yield line


def _rows(source: SourceFile) -> Iterator[list[str]]:
    """Yield the header and the rows of a CSV file; raise DataError for a row with another number of cells."""
    csv.field_size_limit(MAX_LINE)
    lines = _lines(source)
    first = next(lines, "")
    reader = csv.reader(_chained(first, lines), delimiter=_delimiter(source, first), strict=True)
    header = _header(source.name, next(reader, []))
    yield header
    number = empty = 0
    for row in reader:
        if not row:
            empty += 1  # blank lines at the end are skipped
            continue
        for _ in range(empty if len(header) == 1 else 0):
            number += 1
            yield [""]  # a blank line within a file of one column is an empty cell
        empty, number = 0, number + 1
        if len(row) != len(header):
            raise DataError(
                f"{source.name}, row {number:,} has {len(row):,} cells, but the header has {len(header):,}; put cells "
                "that contain the separator in quotes"
            )
        yield row


def _chained(first: str, lines: Iterator[str]) -> Iterator[str]:
    yield first
    yield from lines


def _delimiter(source: SourceFile, header: str) -> str:
    if Path(source.name).suffix.lower() in (".tsv", ".tab"):
        return "\t"
    return max(",;\t", key=header.count)


def _header(source: str, header: list[str]) -> list[str]:
    """Return the column names; an unnamed first column, as pandas writes its index, is called "index"."""
    if not header:
        raise DataError(f"{source} has no header; write the names of the columns into its first line")
    names = [name.strip() for name in header]
    if not names[0] and len(names) > 1 and "index" not in names:
        names[0] = "index"
    require_columns(names, source)
    for number, name in enumerate(names, start=1):
        if not name:
            raise DataError(f"{source}: column {number} has no name; write one into the first line")
        if _is_number(name) or name.startswith("["):
            raise DataError(
                f"{source}: the first line must hold the names of the columns, but column {number} is {shown(name)}; "
                "add a header"
            )
    return names


def _columns(source: SourceFile, skip: int = -1) -> tuple[pa.Table, int]:
    """Return the typed columns of a CSV file except column `skip`, and the number of rows."""
    rows = _rows(source)
    header = next(rows)
    kept = [number for number in range(len(header)) if number != skip]
    blocks: list[list[pa.Array]] = [[] for _ in kept]
    count, pending = 0, [list[str]() for _ in kept]
    for row in rows:
        count += 1
        for cells, number in zip(pending, kept, strict=True):
            cells.append(row[number])
        if count % BLOCK == 0:
            _flush(pending, blocks)
    _flush(pending, blocks)
    arrays = {header[number]: _typed(pa.chunked_array(made)) for number, made in zip(kept, blocks, strict=True)}
    return pa.table(arrays), count


def _flush(pending: list[list[str]], blocks: list[list[pa.Array]]) -> None:
    for cells, made in zip(pending, blocks, strict=True):
        made.append(pa.array(cells, pa.string()))
        cells.clear()


def _typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert text to int64 or float64 if no information is lost ("007" remains text); empty numbers become null."""
    missing = pa.scalar(None, pa.string())
    filled = pc.if_else(pc.equal(pc.utf8_trim_whitespace(column), ""), missing, column)
    if filled.null_count == len(filled):
        return column
    try:
        whole = pc.cast(filled, pa.int64())
        if pc.all(pc.equal(pc.cast(whole, pa.string()), filled)).as_py():
            return whole
    except pa.ArrowInvalid:
        pass
    try:
        real = pc.cast(filled, pa.float64())
    except pa.ArrowInvalid:
        return column
    leading_zero = pc.any(pc.match_substring_regex(filled, r"^0\d")).as_py()
    return column if leading_zero else real
