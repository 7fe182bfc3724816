"""Generator of collages for any tiles and any number of class tiles, and its use for Omniglot."""

import numpy as np
import pytest

import dmlcore.data
from dmlcore.data import DataError
from dmlcore.data.synthetic.collage import Recipe, TileImages, collages, lay_out
from tests.data import layouts

LABELS = np.repeat(np.arange(6), 8)  # of the tiles: classes 0 and 1 train, 2 and 3 test, 4 and 5 are backgrounds
SPLITS = {
    "train": TileImages(np.arange(16), np.arange(32, 40)),
    "test": TileImages(np.arange(16, 32), np.arange(40, 48)),
}
RECIPES = [Recipe(), Recipe(2, 3), Recipe(3, 2), Recipe(1, 1), Recipe(2, 4)]


def drawn(recipe: Recipe, seed: int = 0):
    """Return a layout, and its collages of tiles (1, 2, 3) whose pixels encode their number."""
    pixels = np.broadcast_to(np.arange(48, dtype=np.uint8)[:, None, None, None], (48, 1, 2, 3))
    layout = lay_out(SPLITS, LABELS, seed, recipe)
    return layout, collages(pixels, layout, SPLITS["train"], LABELS, recipe)


def cut(images, recipe: Recipe):
    """Return the tiles (n, T) of collages (n, 1, H, W)."""
    n, _, height, width = images.shape
    tiles = images.reshape(n, recipe.side, height // recipe.side, recipe.side, width // recipe.side)
    assert (tiles == tiles[:, :, :1, :, :1]).all()
    return tiles[:, :, 0, :, 0].reshape(n, -1).astype(int)


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_so_many_tiles_show_the_class_and_the_others_what_is_behind(recipe):
    layout, images = drawn(recipe)
    assert images.shape == (32, 1, 2 * recipe.side, 3 * recipe.side)
    assert np.array_equal(cut(images[:], recipe), layout.tiles)
    assert (layout.shows.sum(1) == recipe.showing).all()
    for split, rows in layout.splits.items():
        tiles, shows = layout.tiles[rows], layout.shows[rows]
        own = SPLITS[split]
        assert np.isin(tiles[~shows], own.behind).all()
        assert all(len(set(row)) == len(row) for row in tiles.tolist())
        labels = np.where(shows, LABELS[tiles], -1).max(1)
        assert ((LABELS[tiles] == labels[:, None]) == shows).all()
        assert np.array_equal(labels, LABELS[own.front])
        assert any(own.front[0] == row for row in tiles[0])


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_fresh_collages_keep_their_image_and_change_all_else_with_the_seed(recipe):
    _, images = drawn(recipe)
    rows = np.array([3, 3, 0, 15])
    first, again, other = (cut(images.fresh(rows, seed), recipe) for seed in (5, 5, 6))
    assert np.array_equal(first, again)
    assert recipe.tiles == 1 or not np.array_equal(first, other)
    for found in (first, other):
        fronts = SPLITS["train"].front[rows]
        assert (found == fronts[:, None]).any(1).all()
        assert ((LABELS[found] == LABELS[fronts][:, None]).sum(1) == recipe.showing).all()
        assert np.isin(found, np.concatenate([SPLITS["train"].front, SPLITS["train"].behind])).all()


def test_places_of_fresh_collages_are_all_equally_likely():
    _, images = drawn(Recipe())
    found = cut(images.fresh(np.zeros(4000, int), 1), Recipe())
    assert (found == 0).mean(0) == pytest.approx([0.25] * 4, abs=5 * np.sqrt(0.25 * 0.75 / 4000))


@pytest.mark.parametrize(
    ("recipe", "message"),
    [(Recipe(4, 1), "15 tiles need backgrounds, but there are only 8"), (Recipe(3, 9), "one class has only 8 image")],
)
def test_too_few_images_are_counted(recipe, message):
    with pytest.raises(DataError, match=message):
        lay_out(SPLITS, LABELS, 0, recipe)


@pytest.mark.parametrize("sizes", [(0, 1), (2, 0), (2, 5)])
def test_a_recipe_that_no_image_can_follow_is_refused(sizes):
    with pytest.raises(ValueError, match="1 <= showing"):
        Recipe(*sizes)


# Omniglot


@pytest.fixture(scope="module")
def alphabets(tmp_path_factory):
    return layouts.omniglot_for_collages(tmp_path_factory.mktemp("omniglot"))


def test_alphabets_part_the_characters_and_hands_the_letters_behind_them(alphabets):
    whole = dmlcore.data.load("omniglot_collage", root=alphabets)
    source = dmlcore.data.read("omniglot", root=alphabets)
    assert whole.inputs.shape == (90, 1, 56, 56)
    trains = {"train": "Balinese", "validation": "Greek", "test": "Tagalog"}
    behind = {}
    for split, rows in whole.splits.items():
        assert {whole.class_names[label].split()[0] for label in whole.labels[rows]} == {trains[split]}
        tiles, shows = whole.facts["tiles"][rows], whole.facts["shows"][rows]
        assert [source.class_names[n] for n in source.labels[tiles[shows]]] == [
            whole.class_names[n] for n in whole.labels[rows]
        ]
        assert {source.class_names[n] for n in source.labels[tiles[~shows]]} == {"Latin 01", "Latin 02"}
        behind[split] = set(source.facts["drawer"][tiles[~shows]].tolist())
    assert behind == {"train": {1, 2, 3, 4, 5}, "validation": {6, 7}, "test": {8, 9, 10}}
    assert whole.labels[whole.splits["train"]].max() == 2
    assert whole.notes[0].startswith("Balinese trains; Greek validates; Tagalog tests; Latin is behind every character")
    row = int(whole.splits["test"][0])
    tile = source.inputs[whole.facts["tiles"][row, 1]][0]
    assert np.array_equal(whole.image(row)[:28, 28:, 0], 255 - tile)


def test_a_side_of_tiles_is_a_whole_number_of_pixels(alphabets):
    assert dmlcore.data.load("omniglot_collage", root=alphabets, image_size=40).inputs.shape[2:] == (40, 40)
    with pytest.raises(DataError, match="image_size must be a multiple of 2, the number of tiles per side; got 41"):
        dmlcore.data.load("omniglot_collage", root=alphabets, image_size=41)


def test_a_missing_alphabet_is_named(tmp_path):
    layouts.omniglot(tmp_path)
    with pytest.raises(DataError, match="the alphabet Greek in the training split"):
        dmlcore.data.load("omniglot_collage", root=tmp_path)


def test_glyphs_stand_among_those_of_the_first_alphabet_and_the_last_two_that_train_validate():
    whole = dmlcore.data.load("glyph_collage", seed=1)
    kinds = {
        split: sorted({whole.class_names[label].split()[0] for label in whole.labels[rows]})
        for split, rows in whole.splits.items()
    }
    assert kinds["train"] == ["Besho", "Cindral", "Dovari", "Emneth", "Farsku"]
    assert kinds["validation"] == ["Gilowa", "Hestran"]
    assert kinds["test"] == ["Ionteq", "Jurimba", "Kaldoon", "Lirbash", "Meyvor"]
    behind = whole.facts["tiles"][~whole.facts["shows"]]
    assert behind.max() < 24 * 20
    assert whole.inputs.shape == (12 * 24 * 20, 1, 56, 56)
