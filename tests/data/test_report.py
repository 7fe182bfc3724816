"""Reports on data sets: counts compared with published ones; missing, damaged and duplicate images; saved splits."""

import csv
import dataclasses
import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmlcore import data
from dmlcore.data import DataError, Folds, checks, report
from dmlcore.data.files import archives, locate
from tests.data import layouts
from tests.wording import says


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write six classes of four different images, one folder each."""
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    for number, name in enumerate("abcdef"):
        for i in range(4):
            path = tmp_path / "tree" / name / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (20, 16), (40 * number, 50 * i, 7)).save(path)
    return tmp_path / "tree"


def test_parts_and_classes_are_counted(tree: Path) -> None:
    found = report.report("folder", tree, validation="samples")
    assert [(p.name, p.samples, p.classes) for p in found.splits] == [
        ("train", 6, 3),
        ("validation", 6, 3),
        ("test", 12, 3),
    ]
    assert [(c.number, c.name, c.split, c.samples) for c in found.classes][::5] == [
        (0, "a", "train, validation", 4),
        (5, "f", "test", 4),
    ]
    assert found.problems == ()
    assert found.dataset.keys[0] == "a/0.png"
    assert found.dataset.files[0] == tree / "a" / "0.png"


def test_what_is_absent_has_no_place_and_no_problem(tmp_path: Path) -> None:
    found = report.report("cub", tmp_path)
    assert (found.located.place, found.dataset, found.problems) == (None, None, ())


def test_a_split_that_cannot_be_made_is_a_problem_and_not_an_error(tree: Path) -> None:
    found = report.report("folder", tree, folds=Folds(3))
    assert found.dataset is None
    assert "3 folds need 6 training classes" in found.problems[0]


def test_missing_images_are_listed_and_the_lists_still_counted(tmp_path: Path) -> None:
    folder = layouts.cars_devkit(tmp_path / "stanford_cars")
    gone = folder / "cars_test" / "00003.jpg"
    gone.unlink()
    found = report.report("cars", folder)
    assert list(found.located.missing) == [gone]
    assert "1 of 64 images are missing" in found.problems[0]
    assert sum(split.samples for split in found.splits) == 64
    with pytest.raises(DataError, match="1 of 64 images are missing"):
        data.load("cars", root=folder)


def test_counts_beside_the_published_ones(pack) -> None:
    found = report.report("flowers", pack("flowers102-labels.tar.gz"))
    assert [(p.name, p.samples, p.published.samples, p.deviation) for p in found.compared] == [
        ("train and validation", 3493, 3493, ""),
        ("test", 4696, 4696, ""),
    ]
    assert len(found.located.missing) == 8189
    closed = report.report("flowers", pack("flowers102-labels.tar.gz"), split="samples")
    assert closed.compared == ()
    subset = report.report("cub", pack("cub-mini-images.tar.gz"))
    assert subset.compared[1].deviation == "5,546 samples too few, 58 classes too few"


def test_a_check_names_unreadable_files_and_copies_across_classes_and_sides(tree: Path) -> None:
    (tree / "a" / "0.png").write_bytes((tree / "a" / "0.png").read_bytes()[:60])
    shutil.copy(tree / "b" / "1.png", tree / "c" / "1.png")  # both in training
    shutil.copy(tree / "b" / "2.png", tree / "f" / "2.png")  # in training and test
    shutil.copy(tree / "e" / "0.png", tree / "e" / "3.png")
    made = data.load("folder", root=tree, validation="none")
    told: list[tuple[int, int]] = []
    found = checks.examine(made, lambda *both: told.append(both))
    assert told[-1] == (24, 24)
    assert (found.samples, found.failures, found.groups) == (24, 1, 3)
    assert found.unreadable[0][0] == "a/0.png"
    keys = [sorted(made.keys[i] for i in group) for group in found.copies]
    assert sorted(keys) == [["b/1.png", "c/1.png"], ["b/2.png", "f/2.png"], ["e/0.png", "e/3.png"]]
    unreadable, classes, sides, rest = checks.verdicts(found, made)
    assert unreadable.startswith("1 of 24 images cannot be read, the first a/0.png: image ")
    assert classes.startswith("2 groups of identical samples are in several classes, the first b/")
    assert says(sides, "1", "train", "test", "b/2.png (b", "f/2.png (f")
    assert says(rest, "1", "within one class")


def test_samples_that_are_no_files_are_compared_too() -> None:
    made = data.load("toy")
    inputs = np.array(made.inputs[:])
    inputs[9] = inputs[5]
    found = checks.examine(dataclasses.replace(made, inputs=inputs))
    assert (found.samples, found.failures, found.copies) == (6400, 0, ((5, 9),))
    assert checks.examine(made).copies == ()


def test_a_check_is_kept_until_a_file_changes(tree: Path) -> None:
    found, read = checks.run("folder", tree)
    made = read.located.samples
    assert read.dataset is None, "has no default split but must be checked"
    assert checks.result("folder", tree) == found
    assert checks.task_of("folder", tree).status() == "done"
    assert found.stamp == checks.stamp_of(made)
    os.utime(tree / "a" / "1.png", (1, 1))
    assert found.stamp != checks.stamp_of(made)
    (checks.task_of("folder", tree).path / "result.json").write_text("{")
    assert checks.result("folder", tree) is None


def test_a_saved_split_holds_every_sample(tree: Path, tmp_path: Path) -> None:
    made = data.load("folder", root=tree, validation="samples", seed=3)
    report.save_split(made, tmp_path / "split.json")
    report.save_split(made, tmp_path / "split.csv")
    plain = json.loads((tmp_path / "split.json").read_text())
    assert plain["data_set"] == "folder"
    assert plain["settings"] == {"seed": 3, "split": "classes", "validation": "samples"}
    assert plain["parts"]["test"] == {"samples": 12, "classes": 3}
    by_split: dict[str, list[int]] = {}
    for split, index, label, name, key in plain["rows"]:
        by_split.setdefault(split, []).append(index)
        assert (made.labels[index], made.class_names[label], made.keys[index]) == (label, name, key)
    assert by_split == {split: rows.tolist() for split, rows in made.splits.items()}
    table = list(csv.DictReader(io.StringIO((tmp_path / "split.csv").read_text())))
    assert [(r["part"], int(r["index"]), int(r["class_number"]), r["class_name"], r["key"]) for r in table] == [
        tuple(row) for row in plain["rows"]
    ]
    assert {(r["data_set"], r["seed"], r["split"]) for r in table} == {("folder", "3", "classes")}
    with pytest.raises(DataError, match=r"must end in \.json or \.csv"):
        report.save_split(made, tmp_path / "split.txt")


def test_folds_are_part_of_a_saved_split() -> None:
    made = data.load("toy", folds=Folds(4, 2, "random", 5))
    settings = json.loads(report.split_text(made))["settings"]
    assert settings["folds"] == 4
    assert {settings["fold"], settings["fold_order"], settings["fold_seed"]} == {2, "random", 5}


def test_counts_are_remembered_until_the_place_changes(tree: Path) -> None:
    found = report.find("folder", tree)
    assert report.read_summary("folder", tree) is None
    report.remember(found)
    assert report.read_summary("folder", tree) == (24, 6, False)
    os.utime(tree, (5, 5))
    assert report.read_summary("folder", tree) is None


def test_a_large_archive_waits_until_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "CUB_200_2011.tgz"
    with file.open("wb") as sparse:
        sparse.truncate(1_150_585_339)
    assert report.is_packed(file)
    locate.unpacked_at(archives.identify(file)).mkdir(parents=True)
    assert not report.is_packed(file)
    assert not report.is_packed(tmp_path)
