"""The tables equal the transcriptions from which they were made, including every number; notes may be reworded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dmlcore.published import karaman, table_reader
from dmlcore.published.collection import table
from tests.members import in_one_case

SCIENCE = Path(__file__).parents[3] / "shared" / "science"
pytestmark = pytest.mark.skipif(not SCIENCE.is_dir(), reason="the transcriptions are not next to the repository")


def raw(name: str) -> Any:
    return json.loads((SCIENCE / name).read_text())


def leaves(content: object) -> list[object]:
    """Return all numbers and texts in nested lists and dictionaries, in order."""
    if isinstance(content, (dict, list)):
        return [leaf for each in (content.values() if isinstance(content, dict) else content) for leaf in leaves(each)]
    return [] if content is None else [content]


def decimals(note: str) -> list[str]:
    """Return the decimal numbers in a note, sorted as text."""
    return sorted(re.findall(r"\d+\.\d+", note))


def test_the_rows_of_karaman_2021():
    transcribed = raw("karaman-tables.json")
    shown = [
        {"table": number, "method": row.loss, "hp": row.hyper, **dict(zip(file.columns, row.values, strict=True))}
        | ({"printed_label": row.method} if row.method else {})
        | ({"quoted_from": row.quoted_from, "quote_matches": True} if row.quoted_from else {})
        for number, file in table_reader.files("K").items()
        for row in file.rows
    ]
    order = list(transcribed["tables"])
    assert sorted(shown, key=lambda row: order.index(row["table"])) == transcribed["rows"]
    for number, about in transcribed["tables"].items():
        file = table_reader.files("K")[number]
        assert (file.caption, file.dataset, file.queries, len(file.rows)) == (
            about["content"],
            about["dataset"],
            about["n_queries"],
            about["n_rows"],
        )
        assert file.queries_inferred == (about["n_queries_origin"] == "inferred")
        assert about["split"].startswith(file.split)
    notes = {note for number in order for note in table(f"K-{number}").notes}
    assert sorted(decimals(f"{f.get('row')}: {f['flag']}") for f in transcribed["flags"]) == sorted(
        map(decimals, notes)
    )
    assert len(karaman.rows()) == len(transcribed["rows"])


@in_one_case(source="GCZP")
def test_the_tables_of_the_others(source):
    transcribed = raw("other-tables.json")
    assert table_reader.sources()[source].citation == transcribed["sources"][source]
    wanted = {number: found for number, found in transcribed[source].items() if not number.endswith("_recomputed")}
    assert set(table_reader.files(source)) == set(wanted)
    for number, found in wanted.items():
        file, shown = table_reader.files(source)[number], table(f"{source}-{number.replace(' ', '-')}")
        assert file.caption == found["what"]
        noted = [decimals(note) for note in shown.notes]
        assert all(decimals(note) in noted for note in found.get("notes", ()))
        assert "confidence" not in found or any("transcription is high" in note for note in shown.notes)
        said = " ".join(shown.notes)
        assert all(f"{name} {value:g}" in said for name, value in found.get("learned_coefficients", {}).items())
        assert labels(found) <= {word for row in shown.rows for word in (row.method, row.setting)}
        assert values(file) == numbers(source, number, found), number


def labels(found: Any) -> set[str]:
    """Return the labels of the rows of a transcribed table."""
    if "by_embedding_size" in found:
        return {method for methods in found["by_embedding_size"].values() for method in methods}
    rows = found["rows"]
    if "components" in found["what"]:
        return {f"with {name}" for name in rows}
    return set(rows) if isinstance(rows, dict) else {row[0] for row in rows if isinstance(row[0], str)}


def values(file: table_reader.File) -> list[object]:
    """Return the values of a table row by row, each mean followed by its deviation."""
    return [
        value
        for row in file.rows
        for i, printed in enumerate(row.values)
        for value in (printed, *row.spread[i : i + 1])
        if value != ""
    ]


def numbers(source: str, number: str, found: Any) -> list[object]:
    """Return the values of a transcribed table of any shape."""
    if (source, number) == ("G", "5.4"):  # levels of the factors are settings, printed once per method
        return [*found["baseline"].values(), *(value for *_, c2, pnca in found["rows"] for value in (c2, pnca))]
    if isinstance(found.get("rows"), list):
        return leaves([row[1:] for row in found["rows"]])
    return leaves(found.get("rows", found.get("by_embedding_size")))


@pytest.mark.parametrize(("number", "cells"), [("5.1", 240), ("3.1", 208)])
def test_the_fair_tables_of_gurbuz_2022_cell_by_cell(number, cells):
    """Each number has its transcribed method, data set, embedding size and score."""
    found = raw("other-tables.json")["G"][number]
    wanted = {
        (method, dataset, size, score): leaves(value)
        for method, by_dataset in found["rows"].items()
        for dataset, by_size in by_dataset.items()
        for size, values in by_size.items()
        for score, value in (values.items() if isinstance(values, dict) else zip(found["metrics"], values, strict=True))
    }
    shown = {
        (row.method, row.dataset.replace("CUB-200-2011", "CUB"), row.size, score): leaves(
            [value, row.spread[score]] if row.spread else [value]
        )
        for row in table(f"G-{number}").rows
        for score, value in row.values.items()
    }
    assert len(wanted) == cells
    assert shown == wanted
