"""The pictures for a first slide: drawn by their command, from what ships alone; what is missing is said."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from dmlcore.storage.runs import EXAMPLE, EXAMPLE_REMOVED, RunStore
from docs import make_pictures

SIZE = (1600, 900)


def test_those_that_ship_are_small_slides_and_the_field_is_what_the_command_draws():
    images = {path.name: Image.open(path) for path in make_pictures.FOLDER.glob("*.png")}
    assert {name: image.size for name, image in images.items()} == {"field.png": SIZE, "failure.png": SIZE}
    assert sum(path.stat().st_size for path in make_pictures.FOLDER.iterdir()) < 300_000
    drawn = np.asarray(Image.open(io.BytesIO(make_pictures.field())).convert("RGB"), int)
    shipped = np.asarray(images["field.png"].convert("RGB"), int)
    assert np.abs(drawn - shipped).mean() < 1.0


def test_the_failure_of_the_example_that_ships_is_drawn_where_there_are_no_birds(tmp_path):
    store = RunStore(tmp_path / "runs")
    run = make_pictures.chosen(store, None)
    assert run.id == EXAMPLE
    image = Image.open(io.BytesIO(make_pictures.failure(run)))
    assert image.size == SIZE
    table = np.asarray(image.convert("RGB"))[150:720, 860:1550]
    colours = {tuple(colour) for colour in table.reshape(-1, 3).tolist()}
    green = tuple(int(make_pictures.BETTER[i : i + 2], 16) for i in (1, 3, 5))
    assert min(sum(abs(a - b) for a, b in zip(green, c, strict=True)) for c in colours) < 12  # some loss helps


def test_without_any_run_the_command_says_what_to_do(tmp_path, capsys):
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / EXAMPLE_REMOVED).touch()
    assert make_pictures.main(["--runs", str(runs), "--to", str(tmp_path / "to")]) == 1
    assert "dml train birds" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["field.png"]


@pytest.mark.parametrize("name", ["no-such-run", "../escape"])
def test_a_run_that_is_not_there_is_named(tmp_path, capsys, name):
    assert make_pictures.main(["--runs", str(tmp_path), "--run", name, "--to", str(tmp_path / "to")]) == 1
    assert name in capsys.readouterr().err
