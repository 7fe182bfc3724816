"""Previews of files of embeddings: shape, first rows, guessed columns, and choice among several candidates."""

from pathlib import Path

import numpy as np
import pytest

from dmlcore.data.embedding_sets.preview import ROWS, preview
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.data.embedding_sets.table import AmbiguousVectors
from tests.data.embedding_sets.samples import vectors


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "e.npy", vectors(rows=8))
    return tmp_path / "e.npy"


def test_shape_columns_and_first_rows_are_shown(file: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("file,Category,size\n" + "".join(f"{k}.png,c{k % 2},{k}\n" for k in range(8)))
    seen = preview(file, tmp_path / "labels.csv")
    assert (seen.source, seen.rows, seen.dimensions, seen.dtype) == ("e.npy", 8, 8, "float32")
    assert seen.columns == ("file", "Category", "size")
    assert seen.first["size"] == list(range(ROWS))
    assert seen.first["Category"] == ["c0", "c1", "c0", "c1", "c0"]
    assert [float(value) for value in seen.vectors[0].removesuffix(", …").split(", ")] == pytest.approx(
        vectors(rows=8)[0, :4], rel=1e-2
    )
    assert len(seen.vectors) == ROWS
    assert seen.roles == Roles(label="Category", image="file")


def test_a_single_column_of_a_file_of_labels_has_the_labels(file: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("species\n" + "a\nb\n" * 4)
    assert preview(file, tmp_path / "labels.csv").roles == Roles(label="species")


def test_unprintable_text_is_escaped(file: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("label\n" + "a\u202eb\n" * 8)
    assert preview(file, tmp_path / "labels.csv").first["label"][0] == "a\\u202eb"


def test_several_candidates_are_offered(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", clip=vectors(width=4), dino=vectors(width=6))
    with pytest.raises(AmbiguousVectors) as raised:
        preview(tmp_path / "two.npz")
    assert list(raised.value.candidates) == ["clip", "dino"]
    assert preview(tmp_path / "two.npz", vectors="dino").dimensions == 6
