"""Reading of stored sets, whose files may be damaged or forged."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dmlcore.data import DataError
from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.folder import write
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.data.embedding_sets.stored import load
from tests.data.embedding_sets import samples

SPLITS = ["train", "test"] * 30  # every class is in one of them


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    columns = {"label": samples.labels(), "sku": [f"item {row}" for row in range(60)], "split": SPLITS}
    (tmp_path / "set").mkdir()
    table = files.from_arrays(samples.vectors("float16"), columns, "mine.npy")
    write(tmp_path / "set", table, Roles.guess(table.columns), name="Mine")
    return tmp_path / "set"


def about(folder: Path, **changes: Any) -> None:
    path = folder / "set.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_set_is_read_as_written(folder: Path) -> None:
    made = load(folder)
    assert (made.name, made.source, made.labelled, made.split) == ("Mine", "mine.npy", True, "classes")
    assert np.array_equal(made.vectors, samples.vectors("float16"))
    assert not made.vectors.flags.writeable
    assert [made.class_names[label] for label in made.labels] == samples.labels()
    assert made.class_names == ("class 0", "class 2", "class 4", "class 1", "class 3", "class 5")
    assert (made.train_classes, made.official_train, made.images) == (3, None, None)
    assert made.ids == [f"item {row}" for row in range(60)]
    assert made.columns.column_names == ["label", "sku", "split"]


def replaced(name: str, values: np.ndarray) -> Callable[[Path], None]:
    return lambda folder: np.save(folder / name, values, allow_pickle=True)


def changed(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: about(folder, **changes)


def columns(table: pa.Table) -> Callable[[Path], None]:
    return lambda folder: pq.write_table(table, folder / "columns.parquet")


def with_images(path: str, image_folder: str | None = "/photos") -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        pq.write_table(pa.table({"path": [path] * 60}), folder / "images.parquet")
        about(folder, images=60, image_folder=image_folder)

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "set.json").unlink(), "is not an embedding set: set.json cannot be read"),
        (lambda folder: (folder / "set.json").write_text("{"), "is damaged: set.json"),
        (lambda folder: (folder / "set.json").write_text("[" * 100_000), "is damaged: set.json"),
        (changed(samples=0), "is damaged: set.json: samples"),
        (changed(samples=61), "is damaged: vectors.npy has 60 x 8 values of type float16; import it again"),
        (changed(version=9), "was written by a newer release"),
        (changed(class_names=["a"]), "is damaged: the numbers in set.json do not fit each other"),
        (changed(class_names=["a", "b", "c"]), "is damaged: labels.npy has labels outside 0 to 2"),
        (changed(images=3), "is damaged: the numbers in set.json do not fit each other"),
        (changed(roles={"label": "kind"}), "has no column 'kind' for the label"),
        (changed(roles={"label": 3}), "is damaged: set.json: roles.label"),
        (changed(split="samples"), "is damaged: the column of splits does not divide the samples"),
        (replaced("vectors.npy", np.zeros((60, 8))), "is damaged: vectors.npy has 60 x 8 values of type float64"),
        (replaced("vectors.npy", np.array([[{}]])), "vectors.npy contains Python objects"),
        (replaced("labels.npy", np.zeros(60, np.int32)), "is damaged: labels.npy has 60 values of type int32"),
        (replaced("labels.npy", np.full(60, -1)), "is damaged: labels.npy has labels outside 0 to 5"),
        (lambda folder: (folder / "labels.npy").unlink(), "labels.npy: no such file; check the path"),
        (columns(pa.table({"label": ["a"]})), "is damaged: columns.parquet has 1 rows instead of 60"),
        (lambda folder: (folder / "columns.parquet").write_bytes(b"PAR1"), "columns.parquet cannot be read as Parquet"),
        (with_images("../secret.jpg"), "leads outside the folder of the images"),
        (with_images("/etc/x.jpg"), "leads outside the folder of the images"),
        (with_images("secret.txt"), "is not an image"),
        (with_images("a.jpg", "photos"), "is damaged: the folder of the images is not an absolute path"),
    ],
)
def test_a_damaged_set_is_refused(damage: Callable[[Path], object], message: str, folder: Path) -> None:
    damage(folder)
    with pytest.raises(DataError, match=re.escape(message)):
        load(folder)


def test_a_truncated_file_is_refused(folder: Path) -> None:
    for name in ("vectors.npy", "labels.npy", "columns.parquet"):
        damaged = folder.with_name(f"damaged {name}")
        shutil.copytree(folder, damaged)
        content = (damaged / name).read_bytes()
        (damaged / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(DataError, match=re.escape(name)):
            load(damaged)
