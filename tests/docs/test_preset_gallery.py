"""The gallery in docs/ shows every preset, is up to date, and stays small."""

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


def pixels(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), int)


@pytest.fixture
def drawn(monkeypatch):
    """Return the image before it is reduced to 256 colours and compressed, which takes two fifths of the time."""
    found, save, point = [], make_presets.save_figure, io.BytesIO()
    Image.new("RGB", (1, 1)).save(point, "png")
    monkeypatch.setattr(
        make_presets, "save_figure", lambda *given, **how: found.append(save(*given, **how)) or point.getvalue()
    )
    return found


# Draw one panel of those that differ in exponents or points only; these are part of the links of the gallery.
KINDS = {(p.figure, p.loss, p.probe, p.discs, p.edges, p.mining): p for p in PRESETS}


@pytest.mark.parametrize("preset", KINDS.values(), ids=lambda p: f"{p.figure} {p.panel}")
def test_a_preset_renders_as_its_figure(preset, drawn):
    make_presets.render(preset)
    (drawn,) = map(pixels, drawn)
    kept = pixels((FOLDER / make_presets.figure_name(preset)).read_bytes())
    assert drawn.shape == kept.shape == (360, 360, 3)
    apart = np.abs(drawn - kept).max(-1)
    # the difference due to the reduction to 256 colours
    assert (apart > 16).mean() < 0.001, "run python -m docs.make_presets"
    assert apart.mean() < 2, "run python -m docs.make_presets"


def test_a_figure_is_kept_as_it_is_rendered():
    rendered, kept = make_presets.render(PRESETS[0]), (FOLDER / make_presets.figure_name(PRESETS[0])).read_bytes()
    assert Image.open(io.BytesIO(rendered)).mode == Image.open(io.BytesIO(kept)).mode == "P"
    assert abs(len(rendered) - len(kept)) < 0.02 * len(kept)
    assert (pixels(rendered) != pixels(kept)).any(-1).mean() < 0.02, "run python -m docs.make_presets"
