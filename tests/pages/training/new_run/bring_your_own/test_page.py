"""Bring your own without a browser: paths, columns, several candidates, errors, and imports in the background."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dmlcore.experiments import embedding_sets, imports
from dmlcore.jobs import launch
from dmlcore.storage.runs import Run, RunStore
from pages.training.new_run.bring_your_own import service
from tests.data.embedding_sets.samples import vectors
from tests.pages.conftest import load_page
from tests.started import until

ROWS = 40


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cache", "data", "runs"):
        monkeypatch.setenv(f"DML_{name.upper()}", str(tmp_path / name))
    service._preview.clear()


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the runs whose map is requested; no map is computed."""
    asked: list[str] = []
    monkeypatch.setattr(launch, "project", lambda run: asked.append(run.id))
    return asked


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "e.npy", vectors(rows=ROWS))
    lines = "".join(f"k{row},{'abcd'[row % 4]},{row / 2}\n" for row in range(ROWS))
    (tmp_path / "labels.csv").write_text("key,class,size\n" + lines)
    return tmp_path


def give(**paths: Path | str) -> AppTest:
    app = load_page("bring_your_own")
    for role, path in paths.items():
        app.text_input(key=f"path-{role}").set_value(str(path))
    return app.run()


def box(app: AppTest, label: str):
    return next(box for box in app.selectbox if box.label == label)


def stored() -> list[Run]:
    return [run for run in RunStore().list() if run.is_embedding_set]


def refusals(app: AppTest) -> list[str]:
    return [text.value for text in app.text]


def test_files_by_path_become_a_set_and_explore_shows_it(folder: Path, mapped: list[str]) -> None:
    app = give(embeddings=folder / "e.npy", labels=folder / "labels.csv")
    assert any("40 vectors of 8 dimensions" in line.value for line in app.markdown)
    assert (box(app, "Label").value, box(app, "Id").value, box(app, "Image").value) == ("class", "key", "")
    app.text_input[-1].set_value("Mine").run()
    app.button(key="import").click().run()
    assert not app.exception
    (run,) = stored()
    made = embedding_sets.of_run(run)
    assert (run.spec.name, made.class_names, made.roles.id) == ("Mine", ("a", "b", "c", "d"), "key")
    assert mapped == [run.id]
    assert app.title[0].value == "Explore"
    assert app.query_params["run"] in (run.id, [run.id])
    assert list(imports._scratch().iterdir()) == []


def test_a_guessed_label_is_shown_as_a_guess_and_can_be_left_out(folder: Path, mapped: list[str]) -> None:
    (folder / "labels.csv").write_text((folder / "labels.csv").read_text().replace("class", "species"))
    app = give(embeddings=folder / "e.npy", labels=folder / "labels.csv")
    assert box(app, "Label").value == "species"
    assert any("Is this the label?" in notice.value for notice in app.info)
    box(app, "Label").set_value("").run()
    assert not app.info
    assert any("choose it as Label" in notice.value for notice in app.warning)
    app.button(key="import").click().run()
    assert not embedding_sets.of_run(stored()[0]).labelled


def test_the_array_is_chosen_if_there_are_several(folder: Path, mapped: list[str]) -> None:
    np.savez(folder / "two.npz", clip=vectors(rows=ROWS, width=4), dino=vectors(rows=ROWS, width=6))
    app = give(embeddings=folder / "two.npz")
    assert any("4 dimensions" in line.value for line in app.markdown)
    box(app, "Embeddings").set_value("dino").run()
    app.button(key="import").click().run()
    assert embedding_sets.of_run(stored()[0]).vectors.shape == (ROWS, 6)


def test_errors_of_rows_appear_at_the_button_and_store_nothing(folder: Path) -> None:
    values = vectors(rows=ROWS)
    values[30] = 0
    np.save(folder / "e.npy", values)
    app = give(embeddings=folder / "e.npy", labels=folder / "labels.csv")
    app.button(key="import").click().run()
    assert any("e.npy, row 31: all 8 values are 0" in line for line in refusals(app))
    box(app, "Id").set_value("class").run()
    app.button(key="import").click().run()
    assert any("make ids unique" in line for line in refusals(app))
    assert not stored()


def test_images_and_rows_without_one_are_counted_before_the_import(folder: Path, photos: Path) -> None:
    np.save(folder / "eight.npy", vectors(rows=8))
    app = give(embeddings=folder / "eight.npy", images=photos)
    assert any("8 image files found" in line.value for line in app.markdown)
    assert any("8 of 8 rows have an image" in line.value for line in app.markdown)
    app.text_input(key="path-embeddings").set_value(str(folder / "e.npy")).run()
    assert any("0 of 40 rows have an image" in line.value for line in app.warning)
    lines = "".join(f"{row}.png,{'xy'[row % 2]}\n" for row in range(1, 9))
    (folder / "names.csv").write_text("file,class\n" + lines)
    app.text_input(key="path-embeddings").set_value(str(folder / "eight.npy"))
    app.text_input(key="path-labels").set_value(str(folder / "names.csv")).run()
    assert any("7 of 8 rows have an image" in line.value for line in app.warning)
    assert any("Row 8 is the first without one ('8.png')" in line.value for line in app.text)


@pytest.mark.parametrize("damaged", ["cut.npy", "nothing"])
def test_damaged_and_missing_files_are_refused_next_to_their_input(folder: Path, damaged: str) -> None:
    (folder / "cut.npy").write_bytes((folder / "e.npy").read_bytes()[:200])
    app = give(embeddings=folder / damaged)
    assert any(damaged in line or "no such" in line for line in refusals(app))
    assert not [button for button in app.button if button.key == "import"]


def test_a_shared_app_reads_no_file_outside_the_data_folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_TOKEN", "proxy")
    app = give(embeddings=folder / "e.npy")
    assert any("is outside the data folder" in line for line in refusals(app))


def test_links_name_no_path(folder: Path) -> None:
    app = load_page("bring_your_own", **{"path-embeddings": str(folder / "e.npy"), "embeddings": str(folder)})
    assert app.text_input(key="path-embeddings").value in (None, "")


def test_the_example_is_filled_in(mapped: list[str]) -> None:
    app = load_page("bring_your_own")
    app.button(key="example").click().run()
    app.button(key="import").click().run()
    made = embedding_sets.of_run(stored()[0])
    assert (len(made.labels), len(made.class_names), len(made.images)) == (500, 10, 500)


def again(app: AppTest) -> AppTest:
    """Return the page after another run, half a second later."""
    time.sleep(0.5)
    app.run()
    assert not app.exception
    return app


def test_many_rows_are_imported_in_the_background(
    folder: Path, mapped: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "FEW_ROWS", 10)
    app = give(embeddings=folder / "e.npy", labels=folder / "labels.csv")
    app.button(key="import").click()
    until(lambda: again(app).title[0].value == "Explore")
    assert mapped == [stored()[0].id]
    assert list(imports._scratch().iterdir()) == []


def test_a_failure_in_the_background_is_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "FEW_ROWS", 10)
    app = give(embeddings=folder / "e.npy", labels=folder / "labels.csv")
    box(app, "Id").set_value("class").run()
    app.button(key="import").click()
    until(lambda: any("make ids unique" in line for line in refusals(again(app))))
    assert not stored()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for row in range(8):
        path = tmp_path / "birds" / "ab"[row % 2] / f"{row}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30), (30 * row, 90, 200)).save(path)
    return tmp_path / "birds"


def give_photographs(path: Path) -> AppTest:
    app = load_page("bring_your_own")
    app.segmented_control(key="kind").set_value("Photographs").run()
    app.text_input(key="path-photographs").set_value(str(path)).run()
    return app


def test_photographs_become_a_set_and_those_left_out_are_named_before_the_map(photos: Path, mapped: list[str]) -> None:
    (photos / "a" / "2.png").write_bytes(b"damaged")
    app = give_photographs(photos)
    assert box(app, "Network").value == "efficientnet_lite0"
    app.button(key="import").click()
    until(lambda: any(button.key == "open" for button in again(app).button))
    assert any("1 of 8 photographs was left out" in text and "2.png" in text for text in refusals(app))
    app.button(key="open").click().run()
    assert app.title[0].value == "Explore"
    (run,) = stored()
    made = embedding_sets.of_run(run)
    assert (run.spec.name, made.vectors.shape, made.class_names) == ("birds", (7, 1280), ("a", "b"))
    assert mapped == [run.id]
    assert list(imports._scratch().iterdir()) == []


def test_a_folder_without_photographs_is_refused(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    app = give_photographs(tmp_path / "empty")
    app.button(key="import").click()
    until(lambda: any("contains no photographs" in text for text in refusals(again(app))))
    assert not stored()


@pytest.mark.parametrize("is_shared", [False, True])
def test_absolute_paths_of_images_follow_the_rule_of_paths(
    folder: Path, photos: Path, mapped: list[str], monkeypatch: pytest.MonkeyPatch, is_shared: bool
) -> None:
    """A shared app refuses images outside the data folders, although the embeddings are inside."""
    data = folder / "data"
    data.mkdir()
    np.save(data / "e.npy", vectors(rows=8))
    lines = "".join(f"{path},{path.parent.name}\n" for path in sorted(photos.glob("*/*")))
    (data / "labels.csv").write_text("image,class\n" + lines)
    (data / "photos").mkdir()
    if is_shared:
        monkeypatch.setenv("DML_TOKEN", "proxy")
    app = give(embeddings=data / "e.npy", labels=data / "labels.csv", images=data / "photos")
    app.button(key="import").click().run()
    if is_shared:
        assert any("leads outside the folder of the images" in text for text in refusals(app))
        assert not stored()
    else:
        assert [*embedding_sets.of_run(stored()[0]).images] == sorted(photos.glob("*/*"))
