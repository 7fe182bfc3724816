"""Embeddings with labels and images are dropped and appear on the map; damaged files store nothing; paths; doors."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from dmlcore.experiments import embedding_sets
from dmlcore.storage.runs import Run, RunStore
from tests.browser.harness import Server, go

pytestmark = pytest.mark.browser

ROWS, CLASSES, WIDTH = 90, 6, 16
EXPLORE = re.compile(r"/explore\?run=")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Vectors in six groups, a table of labels, and images, loose and in a zip with a folder in it."""
    random = np.random.default_rng(0)
    labels = np.arange(ROWS) % CLASSES
    vectors = random.normal(size=(CLASSES, WIDTH))[labels] + 0.3 * random.normal(size=(ROWS, WIDTH))
    np.save(tmp_path / "clip.npy", vectors.astype(np.float32))
    lines = [f"{row:03}.png,kind {label},{row / 2}\n" for row, label in enumerate(labels)]
    (tmp_path / "labels.csv").write_text("image,label,price\n" + "".join(lines))
    (tmp_path / "photos").mkdir()
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as packed:
        for row, label in enumerate(labels):
            file = tmp_path / "photos" / f"{row:03}.png"
            Image.new("RGB", (24, 24), (40 * int(label), 2 * row, 90)).save(file)
            packed.write(file, f"photos/{file.name}")
    return tmp_path


def stored(server: Server) -> list[Run]:
    return [run for run in RunStore(server.runs).list() if run.is_embedding_set]


def opened(page: Any, server: Server) -> Any:
    """Open the page and return its three file inputs."""
    go(page, f"{server.url}/bring_your_own")
    inputs = page.locator("input[type=file]")
    inputs.nth(2).wait_for(state="attached")
    return inputs


def press_import(page: Any) -> None:
    page.get_by_role("button", name="Import", exact=True).click()


def test_dropped_files_arrive_on_the_map_with_images(page, server: Server, folder: Path):
    inputs = opened(page, server)
    inputs.nth(0).set_input_files(folder / "clip.npy")
    expect(page.get_by_text("90 vectors of 16 dimensions")).to_be_visible()
    inputs.nth(1).set_input_files(folder / "labels.csv")
    expect(page.get_by_role("combobox", name="Label")).to_have_value("label")
    expect(page.get_by_role("combobox", name="Image")).to_have_value("image")
    inputs.nth(2).set_input_files(folder / "photos.zip")
    expect(page.get_by_text("photos.zip")).to_be_visible()
    press_import(page)
    page.wait_for_url(EXPLORE)
    page.locator("canvas").first.wait_for()
    (run,) = stored(server)
    assert f"run={run.id}" in page.url
    made = embedding_sets.of_run(run)
    assert made.class_names == tuple(f"kind {number}" for number in range(CLASSES))
    assert made.images is not None
    assert all(Path(image).is_relative_to(run.path) for image in made.images)
    expect(page.get_by_text("90 of 90 images")).to_be_visible()


def test_many_loose_images_are_sent_as_one_file(page, server: Server, folder: Path):
    before = len(stored(server))
    inputs = opened(page, server)
    inputs.nth(0).set_input_files(folder / "clip.npy")
    expect(page.get_by_text("90 vectors of 16 dimensions")).to_be_visible()
    page.get_by_role("button", name="Upload a folder").wait_for()
    inputs.nth(2).set_input_files(sorted((folder / "photos").iterdir()))
    expect(page.get_by_test_id("stFileUploader").nth(2)).to_contain_text("images.zip")
    expect(page.get_by_text("90 of 90 rows have an image")).to_be_visible()
    press_import(page)
    page.wait_for_url(EXPLORE)
    page.locator("canvas").first.wait_for()
    run = stored(server)[0]
    assert len(stored(server)) == before + 1
    made = embedding_sets.of_run(run)
    assert not made.labelled
    assert len(made.images) == ROWS


def test_damaged_files_give_their_message_and_store_nothing(page, server: Server, folder: Path):
    before = len(stored(server))
    inputs = opened(page, server)
    cut = (folder / "clip.npy").read_bytes()[:-100]
    inputs.nth(0).set_input_files({"name": "<b>cut</b>.npy", "mimeType": "application/octet-stream", "buffer": cut})
    expect(page.get_by_text("Not imported")).to_be_visible()
    expect(page.get_by_text("<b>cut</b>.npy", exact=False).last).to_be_visible()
    expect(page.get_by_role("button", name="Import", exact=True)).to_have_count(0)
    inputs.nth(0).set_input_files(folder / "clip.npy")
    expect(page.get_by_text("90 vectors of 16 dimensions")).to_be_visible()
    few = (folder / "labels.csv").read_text().splitlines()[:50]
    inputs.nth(1).set_input_files({"name": "few.csv", "mimeType": "text/csv", "buffer": "\n".join(few).encode()})
    expect(page.get_by_text("few.csv has 49 rows, but clip.npy has 90 vectors", exact=False)).to_be_visible()
    inputs.nth(1).set_input_files(folder / "labels.csv")
    expect(page.get_by_text("few.csv has 49 rows", exact=False)).to_have_count(0)
    inputs.nth(2).set_input_files({"name": "bad.zip", "mimeType": "application/zip", "buffer": b"PK\x03\x04 damaged"})
    expect(page.get_by_text("bad.zip")).to_be_visible()
    press_import(page)
    expect(page.get_by_text("cannot be unpacked", exact=False)).to_be_in_viewport()
    assert len(stored(server)) == before


def test_an_uploaded_folder_of_photographs_arrives_on_the_map(page, server: Server, folder: Path):
    birds = folder / "birds"
    for row in range(12):
        path = birds / "ab"[row % 2] / f"{row // 2}.png"  # the same names in both class folders
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30), (20 * row, 90, 200)).save(path)
    go(page, f"{server.url}/bring_your_own")
    page.get_by_text("Photographs", exact=True).first.click()
    expect(page.get_by_label("Embeddings: path on this server")).to_have_count(0)
    field = page.locator("input[type=file][webkitdirectory]")
    field.wait_for(state="attached")
    field.set_input_files(birds)
    expect(page.get_by_text("12 images packed into one file")).to_be_visible()
    expect(page.get_by_text("birds.zip")).to_be_visible()
    expect(page.get_by_role("combobox", name="Network")).to_have_value("EfficientNet-Lite 0")
    page.get_by_role("button", name="Embed", exact=True).click()
    page.wait_for_url(EXPLORE, timeout=120_000)
    page.locator("canvas").first.wait_for()
    made = embedding_sets.of_run(stored(server)[0])
    assert (made.vectors.shape, made.class_names) == ((12, 1280), ("a", "b"))
    assert all(Path(image).is_relative_to(stored(server)[0].path) for image in made.images)
    expect(page.get_by_text("12 of 12 images")).to_be_visible()
