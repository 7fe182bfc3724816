"""The gallery in docs/ shows every preset, as it is now, and stays small."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from dmlcore.loss_analysis.thesis_figures import PRESETS
from docs import make_presets

FOLDER = make_presets.HERE / "presets"


def test_the_gallery_lists_every_preset_and_is_up_to_date():
    text = (make_presets.HERE / "presets.md").read_text()
    assert text == make_presets.gallery(), "run python -m docs.make_presets"
    for preset in PRESETS:
        assert text.count(f"(presets/{make_presets.figure_name(preset)})") == 1
        assert preset.caption in text


def test_the_figures_are_those_of_the_presets():
    assert {p.name for p in FOLDER.iterdir()} == {make_presets.figure_name(p) for p in PRESETS}
    assert sum(p.stat().st_size for p in FOLDER.iterdir()) < 1_500_000


@pytest.mark.parametrize("preset", PRESETS, ids=lambda p: f"{p.figure} {p.panel}")
def test_every_preset_renders_as_its_figure(preset):
    drawn, kept = (
        np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        for data in (make_presets.render(preset), (FOLDER / make_presets.figure_name(preset)).read_bytes())
    )
    assert drawn.shape == kept.shape == (360, 360, 3)
    assert (drawn != kept).any(-1).mean() < 0.02, "run python -m docs.make_presets"
