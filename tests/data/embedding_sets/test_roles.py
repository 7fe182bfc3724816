"""Roles of columns: guesses by name, class numbers, splits and identifiers."""

import re

import numpy as np
import pyarrow as pa
import pytest

from dmlcore.data import DataError
from dmlcore.data.embedding_sets.roles import NO_LABEL, Roles, classes_of, ids_of


def classes(labels, splits=None):
    columns = {"y": labels} | ({} if splits is None else {"s": splits})
    roles = Roles(label="y", split=None if splits is None else "s")
    return classes_of(pa.table(columns), roles, len(labels), "a.csv")


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        (["Label", "ID", "Image", "Split"], Roles("Label", "ID", "Image", "Split")),
        (["category", "sku", "image_path", "fold"], Roles("category", "sku", "image_path", "fold")),
        (["y", "uuid", "subset"], Roles("y", "uuid", None, "subset")),
        (["filename", "class_name"], Roles("class_name", None, "filename", None)),
        (["path", "filename"], Roles(None, "filename", "path", None)),
        (["class", "label"], Roles("label")),
        (["weight"], Roles()),
    ],
)
def test_roles_are_guessed_by_usual_names(names: list[str], roles: Roles) -> None:
    assert Roles.guess(pa.table({name: [1] for name in names})) == roles


def test_a_role_without_its_column_is_named() -> None:
    with pytest.raises(DataError, match=r"^a\.csv has no column 'kind' for the label; it has a, b$"):
        Roles(label="kind").require(pa.table({"a": [1], "b": [1]}), "a.csv")


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (pa.array(["b", "a", "b", "c"]), ("a", "b", "c")),
        (pa.array(["b", "a", "b", "c"]).dictionary_encode(), ("a", "b", "c")),
        (pa.array(["b", "a", "b", "c"], pa.large_string()), ("a", "b", "c")),
        (pa.array([9, 2, 9, 10]), ("2", "9", "10")),
        (pa.array([9.0, 2.0, 9.0, 10.0]), ("2", "9", "10")),
        (pa.array([True, False, True, True]), ("False", "True")),
        (pa.array([-1, -2, -1, 0], pa.int8()), ("-2", "-1", "0")),
    ],
)
def test_classes_are_sorted_by_name_or_value(labels: pa.Array, names: tuple[str, ...]) -> None:
    made = classes(labels)
    assert made.names == names
    values = [str(int(v)) if isinstance(v, float) else str(v) for v in labels.to_pylist()]
    assert [made.names[label] for label in made.labels] == values
    assert made.labels.dtype == np.int64
    assert (made.train_classes, made.is_train, made.split) == (len(names) // 2, None, "")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", None, "b"], ", row 2 has no label"),
        (["a", "b", " "], ", row 3 has no label"),
        ([1.0, 2.0, float("nan")], ", row 3 has no label"),
        ([1.0, 2.5], ", row 2: 2.5 is not a whole number"),
        ([1.0, float("inf")], ", row 2: inf is not a whole number"),
        (pa.array([0, 1], pa.int32()).cast(pa.date32()), " has the type date32[day]"),
    ],
)
def test_an_unusable_label_is_named(labels: list, message: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape('a.csv, column y' + message)}"):
        classes(pa.array(labels))


def test_without_labels_all_rows_have_one_class() -> None:
    made = classes_of(pa.table({"s": ["train", "test"]}), Roles(split="s"), 2, "a.csv")
    assert made.names == (NO_LABEL,)
    assert made.labels.tolist() == [0, 0]
    assert made.notes == ("column s is not used, because there are no labels",)


def test_a_split_without_common_classes_numbers_the_training_classes_first() -> None:
    made = classes(pa.array(["a", "z", "b", "y", "m"]), ["test", "Train", " query", "TRAINING", "val"])
    assert made.names == ("y", "z", "m", "a", "b")
    assert made.labels.tolist() == [3, 1, 4, 0, 2]
    assert (made.train_classes, made.is_train, made.split) == (3, None, "classes")
    assert made.notes == (
        "column s: rows of the validation split (1) belong to the training side, of which validation samples are held "
        "out anyway",
        "column s: used as the class-disjoint split, because train and test share no class",
    )


def test_a_split_with_common_classes_is_image_wise() -> None:
    made = classes(pa.array(["a", "b", "a", "c"]), ["train", "train", "test", "valid"])
    assert made.is_train.tolist() == [True, True, False, True]
    assert (made.names, made.train_classes, made.split) == (("a", "b", "c"), 1, "samples")


@pytest.mark.parametrize("side", ["train", "test"])
def test_a_split_with_one_side_is_not_used(side: str) -> None:
    made = classes(pa.array(["a", "b"]), [side, side])
    assert (made.train_classes, made.split) == (1, "")
    assert made.notes == (f"column s is not used, because all rows are {side}; the first half of the classes trains",)


@pytest.mark.parametrize(("value", "shown"), [("trian", "'trian'"), (None, "empty"), ("", "''")])
def test_an_unknown_split_is_named(value: str | None, shown: str) -> None:
    with pytest.raises(DataError, match=rf"^a\.csv, column s, row 2: {shown} is not a split; use train"):
        classes(pa.array(["a", "b"]), ["train", value])


def test_numbers_are_no_splits() -> None:
    with pytest.raises(DataError, match=r"column s, row 1: 0 is not a split"):
        classes(pa.array(["a", "b"]), [0, 1])


def test_ids_must_be_unique_and_present() -> None:
    def ids(values):
        return ids_of(pa.table({"id": values}), Roles(id="id"), "a.csv")

    assert ids([3, 1]) == ["3", "1"]
    assert ids_of(pa.table({"id": [1]}), Roles(), "a.csv") is None
    with pytest.raises(DataError, match=r"^a\.csv, column id: rows 1 and 3 both have the id 'x'; make ids unique$"):
        ids(["x", "y", "x"])
    with pytest.raises(DataError, match=r"^a\.csv, column id, row 2 is empty; give every row an id"):
        ids(["x", None])
