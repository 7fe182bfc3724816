import itertools

import numpy as np
import pytest

import dmlcore.data
from dmlcore.data.synthetic.birds import birds
from dmlcore.data.synthetic.birds.drawing import draw
from dmlcore.data.synthetic.birds.species import FAMILIES, MARKS, guide


def test_no_two_species_look_alike():
    species = guide()
    assert len(species) == 72
    assert len({one.name for one in species}) == 72
    for first, second in itertools.combinations(species, 2):
        if first.family is second.family and first.upper == second.upper:
            assert len(first.marks ^ second.marks) >= 2


def test_marks_stand_out_from_what_they_are_on():
    for one in guide():
        assert one.accent not in (one.upper, one.under, one.wing)
        if one.head == one.accent:
            assert not one.marks & {"cap", "mask", "brow", "throat", "eye_ring"}


def test_both_halves_know_every_family_and_mark_but_no_species_twice():
    halves = guide()[:36], guide()[36:]
    for half in halves:
        assert {one.family for one in half} == set(FAMILIES)
        assert {mark for one in half for mark in one.marks} == set(MARKS)
    looks = [{(one.family.name, one.upper) for one in half} for half in halves]
    assert not looks[0] & looks[1]


def test_the_data_set():
    data = dmlcore.data.load("birds")
    assert data.inputs.shape == (2880, 3, 64, 64)
    assert {split: (len(rows), len(np.unique(data.labels[rows]))) for split, rows in data.splits.items()} == {
        "train": (27 * 40, 27),
        "validation": (9 * 40, 9),
        "test": (36 * 40, 36),
    }
    row = int(data.splits["test"][7])
    species = guide()[data.labels[row]]
    assert data.class_names[data.labels[row]] == species.name
    assert FAMILIES[data.facts["family"][row]] is species.family
    assert {mark for mark, has in zip(MARKS, data.facts["marks"][row], strict=True) if has} == species.marks
    assert data.image(row).shape == (160, 160, 3)


def test_a_bird_depends_on_its_index_and_the_seed_alone():
    rows = np.array([2000, 3, 77])
    first, second = (dmlcore.data.load("birds", seed=4).inputs for _ in range(2))
    found = first[rows]
    assert np.array_equal(second[rows[::-1]][::-1], found)
    assert np.array_equal(second[77], found[2])
    found[:] = 0
    assert first[rows].any()
    assert not np.array_equal(dmlcore.data.load("birds", seed=5).inputs[rows], first[rows])


@pytest.mark.parametrize("size", [32, 64, 100])
def test_inputs_are_the_centres_of_whole_images(size):
    inputs = dmlcore.data.load("birds", image_size=size).inputs
    rows = np.array([5, 1234])
    whole = np.stack(inputs.uncut(rows))
    side = round(size * 256 / 227)
    assert whole.shape == (2, side, side, 3)
    cut = (side - size) // 2
    assert np.array_equal(inputs[rows].transpose(0, 2, 3, 1), whole[:, cut : cut + size, cut : cut + size])


def test_every_size_shows_the_same_scene():
    species = guide()[40]
    large, small = (draw(species, np.random.default_rng(9), side) for side in (128, 64))
    halved = large.reshape(64, 2, 64, 2, 3).mean((1, 3))
    other = draw(species, np.random.default_rng(10), 64)
    assert np.abs(halved - small).mean() < 10 < 25 < np.abs(other - halved).mean()


def test_every_species_can_be_drawn_in_many_poses():
    for number, species in enumerate(guide()):
        for seed in range(3):
            assert draw(species, np.random.default_rng([seed, number]), 32).std() > 5


def test_marks_are_seen():
    """Species of the same scene and colours that differ in one mark give different images."""
    from dataclasses import replace

    plain = replace(guide()[0], marks=frozenset())
    for mark in MARKS:
        marked = replace(plain, marks=frozenset([mark]))
        changes = [
            np.abs(
                draw(plain, np.random.default_rng(seed), 64).astype(int) - draw(marked, np.random.default_rng(seed), 64)
            )
            for seed in range(4)
        ]
        assert (np.max(changes, axis=(0, 3)) > 40).sum() >= 6, mark
        assert np.mean([(change.max(2) > 20).mean() for change in changes]) < 0.12, mark  # and nothing else changes


def test_images_outside_the_set_are_refused():
    inputs = birds.read(None, 32, 0).inputs
    for index in (2880, (0, 1)):
        with pytest.raises(IndexError):
            inputs[index]
