"""All Inspection pages with a run whose network is the user's own, with and without permission to import it."""

from __future__ import annotations

import base64
import io
import sys

import numpy as np
import pytest
from PIL import Image

from dmlcore import data
from dmlcore.inspection.maps import maps
from dmlcore.spec import RunSpec, own_network
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training.loop import train
from pages.inspection.neighbours import upload
from tests.pages.conftest import load_page

NAME = "own_pages_network:make"
SOURCE = """
from torch import nn

def make(width=6):
    return nn.Conv2d(3, width, 4, stride=4)
"""
PAGES = ("explore", "neighbours", "failures", "confusions", "thresholds", "differences", "runs", "fork")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a finished run with an own network."""
    root = tmp_path_factory.mktemp("own")
    (root / "own_pages_network.py").write_text(SOURCE)
    changes = [f"model.name={NAME}", "data.name=digits_pictures", "data.split=classes", "batch.classes=4"]
    changes += ["schedule.steps=4", "schedule.checkpoint_every=2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(own_network.NETWORKS, NAME)
        patch.setenv(own_network.FOLDER, str(root))
        patch.setattr(sys, "path", [str(root), *sys.path])
        run = RunStore(root / "runs").create(RunSpec().with_overrides(changes))
        with run.lock():
            train(run)
    assert run.status() == "done", run.state().message
    maps.make(run, maps.Settings("pca"))
    return run


@pytest.mark.parametrize(
    ("page", "is_permitted"), [*((page, False) for page in PAGES), ("neighbours", True), ("failures", True)]
)
def test_pages_of_a_run_with_an_own_network(
    trained: Run, page: str, is_permitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DML_RUNS", str(trained.path.parent))
    monkeypatch.setenv(own_network.NETWORKS, NAME if is_permitted else "")
    monkeypatch.setenv(own_network.FOLDER, str(trained.path.parent.parent))
    app = load_page(page, run=trained.id)
    assert not app.exception
    assert not [error.value for error in app.error]


def test_an_own_image_is_shown_as_the_network_sees_it() -> None:
    """Glyphs have one channel, which PNG files of colours need three times."""
    for name in ("digits_pictures", "digits"):
        samples = data.load(name)
        inputs = np.asarray(samples.inputs[:1])
        shown = upload._address(inputs, samples)
        image = Image.open(io.BytesIO(base64.b64decode(shown.partition(",")[2])))
        assert image.mode == "RGB"
    grey = np.full((1, 1, 28, 28), 90, np.uint8)
    shown = upload._address(grey, data.load("digits_pictures"))
    image = Image.open(io.BytesIO(base64.b64decode(shown.partition(",")[2])))
    assert image.getpixel((5, 5)) == (90, 90, 90)
