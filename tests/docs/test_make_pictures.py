"""The images for a first slide: drawn by their command from shipped data only; missing data are reported."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from dmlcore.storage.runs import EXAMPLE, EXAMPLE_REMOVED, Run, RunError, RunStore
from docs import make_pictures

SIZE = (1920, 1080)


@pytest.fixture(scope="module")
def field() -> bytes:
    return make_pictures.field()


@pytest.fixture
def field_is_drawn(field, monkeypatch):
    """Use the image of the field that was drawn before, which saves 2 s of CPU time."""
    monkeypatch.setattr(make_pictures, "field", lambda: field)


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> tuple[Run, bytes]:
    run = make_pictures.chosen(RunStore(tmp_path_factory.mktemp("runs")), None)
    return run, make_pictures.failure(run)


def pixels(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), int)


def test_those_that_ship_are_small_slides_and_what_the_command_draws(field, example):
    run, failure = example
    assert run.id == EXAMPLE
    drawn = {"field.png": pixels(field), "failure.png": pixels(failure)}
    assert {path.name for path in make_pictures.FOLDER.iterdir()} == set(drawn)
    for name, picture in drawn.items():
        path = make_pictures.FOLDER / name
        assert picture.shape[1::-1] == SIZE
        assert path.stat().st_size < 200_000
        assert np.abs(picture - pixels(path.read_bytes())).mean() < 1.0
    green = [int(make_pictures.BETTER[i : i + 2], 16) for i in (1, 3, 5)]
    # at least one loss improves the rank
    assert np.abs(drawn["failure.png"][200:900, 960:1870] - green).sum(-1).min() < 12


def test_a_query_is_chosen_by_its_row_and_one_that_is_not_there_is_named(example):
    run, failure = example
    assert np.abs(pixels(make_pictures.failure(run, 0)) - pixels(failure)).mean() > 3
    with pytest.raises(RunError, match="no query 99999"):
        make_pictures.failure(run, 99999)


def test_without_any_run_the_command_says_what_to_do(tmp_path, capsys, field, field_is_drawn):
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / EXAMPLE_REMOVED).touch()
    assert make_pictures.main(["--runs", str(runs), "--to", str(tmp_path / "to")]) == 1
    assert "--run" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["field.png"]
    assert (tmp_path / "to" / "field.png").read_bytes() == field


@pytest.mark.parametrize("name", ["no-such-run", "../escape"])
def test_a_run_that_is_not_there_is_named(tmp_path, capsys, name, field_is_drawn):
    assert make_pictures.main(["--runs", str(tmp_path), "--run", name, "--to", str(tmp_path / "to")]) == 1
    assert name in capsys.readouterr().err
