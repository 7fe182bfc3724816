import hashlib

import numpy as np
import pytest

import dmlcore.data
from dmlcore.data.synthetic.glyphs import programs as glyph_programs
from dmlcore.data.synthetic.glyphs.drawing import POINTS, drawn

# Digest of the pixels of seed 0. Other pixels are other characters and would invalidate scores, example and baselines.
PIXELS = "880cf7c482b0a86dbd78a5058f559922176db7303961eec7d3b6410de45d66f2"


@pytest.fixture(scope="module")
def dataset():
    return dmlcore.data.load("glyphs")


def test_alphabets_are_in_one_split_each(dataset) -> None:
    alphabets = {split: set(dataset.facts["alphabet"][indices]) for split, indices in dataset.splits.items()}
    assert alphabets == {"train": set(range(6)), "validation": {6, 7}, "test": set(range(8, 13))}
    assert {split: len(indices) for split, indices in dataset.splits.items()} == {
        "train": 2_880,
        "validation": 960,
        "test": 2_400,
    }
    assert (dataset.class_names[0], dataset.class_names[-1]) == ("Aruvel 01", "Meyvor 24")
    assert dataset.facts["hand"][:20].tolist() == list(range(1, 21))


def test_pixels_are_the_same_everywhere(dataset) -> None:
    assert dataset.inputs.shape == (6_240, 1, 28, 28)
    assert hashlib.sha256(dataset.inputs[:].tobytes()).hexdigest() == PIXELS


def test_another_seed_is_other_hands_at_the_same_characters(dataset) -> None:
    other = dmlcore.data.load("glyphs", seed=1)
    assert not np.array_equal(other.inputs[:], dataset.inputs[:])
    each = [found.inputs[:].reshape(312, 20, -1).mean(axis=1) / 255 for found in (dataset, other)]
    unit = [
        (means - means.mean(axis=0)) / np.linalg.norm(means - means.mean(axis=0), axis=1)[:, None] for means in each
    ]
    assert ((unit[0] @ unit[1].T).argmax(axis=1) == np.arange(312)).mean() > 0.9


@pytest.mark.parametrize("size", [28, 64])
def test_ink_is_legible_and_stays_off_the_edge(dataset, size: int) -> None:
    pixels = (dataset if size == 28 else dmlcore.data.load("glyphs", image_size=size)).inputs[::5][:, 0]
    border = np.concatenate([pixels[:, [0, -1]].reshape(-1, 2 * size), pixels[:, :, [0, -1]].reshape(-1, 2 * size)])
    assert (border > 0).mean() < 1e-3
    assert 0.08 < pixels.mean() / 255 < 0.14  # calibrated amount of ink at every size
    assert pixels.reshape(len(pixels), -1).max(axis=1).min() > 200


def test_people_see_dark_ink_on_white_where_the_network_sees_it(dataset) -> None:
    shown = dataset.image(4_711)
    assert shown.shape == (84, 84, 3)
    seen = 255 - shown[..., 0].reshape(28, 3, 28, 3).mean(axis=(1, 3))
    assert np.corrcoef(seen.ravel(), dataset.inputs[4_711].ravel())[0, 1] > 0.97


def test_no_two_characters_of_an_alphabet_look_the_same() -> None:
    programs = glyph_programs.invent(3, 24, seed=5)
    assert programs.points.shape == (72, 4, POINTS, 2)
    looks = drawn(programs.points * 0.7 + 0.15, programs.has, np.full(72, 0.12), 14).reshape(3, 24, -1) / 255
    looks /= np.linalg.norm(looks, axis=2, keepdims=True)
    alike = looks @ looks.transpose(0, 2, 1) - np.eye(24)
    assert alike.max() < glyph_programs.ALIKE
    assert (alike.max(axis=1) > 0.7).mean() > 0.5  # though most have a similar character
    again = glyph_programs.invent(2, 24, seed=5)
    assert np.array_equal(again.points, programs.points[:48])


def test_a_line_is_as_wide_as_the_pen_and_one_pixel_soft() -> None:
    line = np.stack([np.linspace(0.1, 0.9, POINTS), np.full(POINTS, 0.5)], axis=1)[None, None]
    for pen, side in ((0.06, 100), (0.1, 40), (0.25, 100)):
        ink = drawn(line, np.array([[True]]), np.array([pen]), side)[0] / 255
        assert ink[:, side // 2].sum() == pytest.approx(pen * side, abs=0.1)
        assert ((ink[:, side // 2] > 0) & (ink[:, side // 2] < 1)).sum() <= 2
    assert not drawn(line, np.array([[False]]), np.array([0.1]), 40).any()
