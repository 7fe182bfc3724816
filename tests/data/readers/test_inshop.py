import numpy as np
import pytest

import dmlcore.data
from dmlcore.data import DataError, published_counts
from dmlcore.data.readers.inshop import read_table
from tests.data import layouts
from tests.wording import says

LIST = "list_eval_partition.txt"
FIRST = "img/WOMEN/Dresses/id_00000001"


@pytest.mark.parametrize(
    ("folder", "where", "base", "tree", "newline"),
    [
        ("In-shop Clothes Retrieval Benchmark", "Eval", "Img", "img", "\n"),
        ("inshop/inshop", "", "", "img", "\r\n"),
        ("inshop", "Anno", "Img", "img_highres", "\n"),
        ("inshop", "Eval", "", "img", "\n"),
    ],
)
def test_every_place_of_list_and_images(tmp_path, folder, where, base, tree, newline):
    layouts.inshop(tmp_path / folder, newline, where=where, base=base, tree=tree)
    dataset = dmlcore.data.load("inshop", root=tmp_path, validation="none")
    assert list(dataset.splits) == ["train", "validation", "test", "gallery"]
    assert [len(rows) for rows in dataset.splits.values()] == [32, 0, 9, 15]
    assert dataset.class_names == tuple(f"id_{item:08d}" for item in (1, 3, 5, 7, 2, 4, 6))
    items = {split: set(dataset.labels[rows]) for split, rows in dataset.splits.items()}
    assert items["train"] == {0, 1, 2, 3}
    assert items["test"] == items["gallery"] == {4, 5, 6}
    assert dataset.inputs[[0, 55]].shape == (2, 3, 64, 64)
    assert not any("no match" in note for note in dataset.notes)


def test_validation_is_cut_out_of_the_training_items_alone(tmp_path):
    dataset = dmlcore.data.load("inshop", root=layouts.inshop(tmp_path), validation="classes")
    assert [len(rows) for rows in dataset.splits.values()] == [16, 16, 9, 15]
    assert np.array_equal(np.sort(np.concatenate(list(dataset.splits.values()))), np.arange(56))


def test_split_by_samples_there_is_no_gallery(tmp_path):
    dataset = dmlcore.data.load("inshop", root=layouts.inshop(tmp_path), split="samples", validation="none")
    assert {split: len(rows) for split, rows in dataset.splits.items()} == {"train": 28, "validation": 0, "test": 28}


def test_queries_without_a_match_are_counted(tmp_path):
    layouts.inshop(tmp_path)
    path = tmp_path / "Eval" / LIST
    rows = path.read_text().splitlines()
    path.write_text("\n".join(row.replace("gallery", "query") if "id_00000002" in row else row for row in rows))
    notes = dmlcore.data.load("inshop", root=tmp_path, validation="none").notes
    assert any(says(note, "test", "8 queries", "gallery") for note in notes)


@pytest.mark.parametrize(
    ("line", "row", "message"),
    [
        (1, "000001.jpg 0", r"txt:1: expected the number of images, got '000001.jpg 0'; CelebA has a list"),
        (1, "57", r"txt:1: announces 57 images, but 56 rows follow"),
        (2, "image_name item_id", r"txt:2: expected the header"),
        (3, "img/A/B/id_1/1.jpg id_1 training", r"txt:3: expected '<image> <item> <train\|query\|gallery>'"),
        (3, "img/A/B/id_1/1.jpg id_1", r"txt:3: expected '<image>"),
        (3, "img/A/B/id_1/1.jpg id_2 train", r"txt:3: the image is in the folder of item 'id_1', but .* 'id_2'"),
        (3, "img/../B/id_1/1.jpg id_1 train", r"txt:3: expected 'img/<sex>"),
        (3, "/mg/A/B/id_1/1.jpg id_1 train", r"txt:3: expected 'img/<sex>"),
        (4, f"{FIRST}/00_1_front.jpg id_00000001 train", r"txt:4: WOMEN/.*front.jpg is already listed in line 3"),
        (4, f"{FIRST}/01_1_front.jpg id_00000001 query", r"class id_00000001 \(.*txt:3 and .*txt:4\); correct"),
    ],
)
def test_19_22_a_damaged_list_is_named_with_its_line(tmp_path, line, row, message):
    layouts.inshop(tmp_path, tree="")
    path = tmp_path / "Eval" / LIST
    rows = path.read_text().splitlines()
    rows[line - 1] = row
    path.write_text("\n".join(rows))
    with pytest.raises(DataError, match=message):
        read_table(tmp_path)


def test_a_list_of_nothing_but_a_count_is_refused(tmp_path):
    layouts.text(tmp_path / LIST, ["5"])
    with pytest.raises(DataError, match=r"txt:2: expected the header"):
        read_table(tmp_path)


def test_the_complete_list_of_the_surrogate(pack):
    table = read_table(dmlcore.data.locate("inshop", pack("inshop-partition-surrogate.tar.gz")))
    assert published_counts.sizes(table.labels, table.train_classes, table.gallery) == {
        "train": (25_882, 3_997),
        "test": (14_218, 3_985),
        "gallery": (12_612, 3_985),
    }
    assert published_counts.deviations("inshop", table.labels, table.train_classes, table.gallery) == ()
    assert np.array_equal(np.unique(table.labels), np.arange(3_997 + 3_985))
    assert (np.bincount(table.labels)[:3_997] == 1).sum() == 12
    assert "the choice of queries is invented" in table.notes[0]
