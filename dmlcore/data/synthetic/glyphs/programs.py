"""Invented alphabets as strokes: the ideal characters before a writer varies them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dmlcore.data.synthetic.glyphs.drawing import POINTS, drawn
from dmlcore.typing import Bools, Floats

STROKES = 4  # maximum number of strokes per character
# number of strokes, and of positions for strokes, from which the characters of an alphabet are composed
PARTS, PLACES = 7, 6
# probability that a new character is proposed as a copy of another one of the alphabet with one stroke changed
LOOK_ALIKES = 0.5
LONGEST = 4.5  # maximum total length of the strokes of a character, in sides of the unit square
# cosine between two coarse images (`_coarse_image`) above which characters look alike and the new one is rejected
ALIKE = 0.86
SEEN = 14

# Control points of stroke shapes that start at (0, 0); y is scaled by the curvature of the stroke.
SHAPES = np.array(
    [
        [[0, 0], [0.25, 0], [0.5, 0], [0.75, 0], [1, 0]],  # line
        [[0, 0], [0.05, 0.55], [0.5, 0.9], [0.95, 0.55], [1, 0]],  # bow
        [[0, 0], [0.5, 0], [1.15, 0], [1.15, 0.55], [0.7, 0.5]],  # hook
        [[0, 0], [0.2, 0.8], [0.5, 0], [0.8, -0.8], [1, 0]],  # wave
        [[0, 0], [0.5, 0.7], [0.5, 0.7], [0.5, 0.7], [1, 0]],  # corner
        [[0, 0], [1.1, 0.9], [1.3, -0.3], [0.6, -0.9], [0, 0.1]],  # loop
    ]
)
SHAPES_OF_ALPHABET = 3
# Probabilities that a character has 1 to STROKES strokes; each alphabet uses one of the rows.
COUNTS = np.array([[0.1, 0.4, 0.35, 0.15], [0.3, 0.45, 0.2, 0.05], [0.0, 0.3, 0.4, 0.3]])


class Programs(NamedTuple):
    """Ideal characters, alphabet by alphabet: control points (C, STROKES, POINTS, 2) in the unit square, y downwards.

    `has` (C, STROKES) is True for strokes that exist; a character with fewer than STROKES strokes has False at the end.
    """

    points: Floats
    has: Bools


class _Taste(NamedTuple):
    """Properties that the characters of an alphabet share."""

    parts: Floats  # strokes from which characters are composed, (PARTS, POINTS, 2)
    places: Floats  # positions for strokes, (PLACES, 2)
    counts: Floats  # probabilities that a character has 1 to STROKES strokes, (STROKES,)


@lru_cache(maxsize=2)  # cached, because it takes 0.75 s, and runs and pages read the data set repeatedly
def invent(alphabets: int, characters: int, seed: int) -> Programs:
    """Create alphabets with `characters` characters each, as read-only arrays; alphabet k depends only on (seed, k)."""
    made = [_alphabet(characters, np.random.default_rng([seed, number])) for number in range(alphabets)]
    invented = Programs(*map(np.concatenate, zip(*made, strict=True)))
    for array in invented:
        array.setflags(write=False)
    return invented


def _alphabet(characters: int, random: np.random.Generator) -> Programs:
    """Create the characters of one alphabet: they share strokes and positions, and no two look alike."""
    shapes = SHAPES[random.permutation(len(SHAPES))[:SHAPES_OF_ALPHABET]]
    parts = np.stack([_part(shapes[random.integers(len(shapes))], random) for _ in range(PARTS)])
    taste = _Taste(parts, random.random((PLACES, 2)), COUNTS[random.integers(len(COUNTS))])
    known: list[Floats] = []
    looks = np.zeros((characters, SEEN * SEEN))
    while (number := len(known)) < characters:
        if number > 2 and random.random() < LOOK_ALIKES:
            strokes = _change_stroke(known[random.integers(number)], taste, random)
        else:
            strokes = _draw_character(taste, random)
        look = _coarse_image(strokes)
        if _length(strokes) < LONGEST and (looks[:number] @ look).max(initial=0) < ALIKE:
            looks[number] = look
            known.append(strokes)
    points = np.zeros((characters, STROKES, POINTS, 2))
    for number, strokes in enumerate(known):
        points[number, : len(strokes)] = strokes
    return Programs(points, np.arange(STROKES) < np.array([[len(strokes)] for strokes in known]))


def _part(shape: Floats, random: np.random.Generator) -> Floats:
    """Return a stroke (POINTS, 2) with random curvature and length, rotated by a random multiple of 45 degrees."""
    bow = (1 if random.random() < 0.5 else -1) * (0.5 + 0.7 * random.random())
    angle = np.pi / 4 * random.integers(8)
    length = 0.4 + 0.6 * random.random()
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    part: Floats = length * (shape * [1, bow]) @ turn.T
    return part


def _draw_character(taste: _Taste, random: np.random.Generator) -> Floats:
    """Create the strokes (n, POINTS, 2) of a random character in the style `taste` of its alphabet."""
    strokes = np.empty((0, POINTS, 2))
    for _ in range(1 + int(np.searchsorted(taste.counts.cumsum(), random.random(), "right"))):
        strokes = np.concatenate([strokes, _place_part(strokes, taste, random)])
    return _fit_into_square(strokes)


def _change_stroke(strokes: Floats, taste: _Taste, random: np.random.Generator) -> Floats:
    """Return a copy of a character with one random stroke added, removed, replaced, mirrored or moved."""
    chosen, change = random.integers(len(strokes)), random.integers(5)
    one, others = strokes[chosen : chosen + 1], np.delete(strokes, chosen, axis=0)
    if change == 0 and len(strokes) < STROKES:
        return _fit_into_square(np.concatenate([strokes, _place_part(strokes, taste, random)]))
    if change == 1 and len(strokes) > 1:
        return _fit_into_square(others)
    if change == 2:
        one = _place_part(others, taste, random)
    elif change == 3:
        middle = one.mean(axis=1)
        one = (one - middle) * ([-1, 1] if random.random() < 0.5 else [1, -1]) + middle
    else:
        one = one + 0.35 * np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])[random.integers(4)]
    return _fit_into_square(np.concatenate([others, one]))


def _place_part(others: Floats, taste: _Taste, random: np.random.Generator) -> Floats:
    """Return a random stroke (1, POINTS, 2), either at a position of the alphabet or attached to one of `others`."""
    part = taste.parts[random.integers(PARTS)][None]
    if len(others) and random.random() < 0.6:
        other = others[random.integers(len(others))]
        at = other[(0, POINTS // 2, POINTS - 1)[random.integers(3)]]
        held = part[:, (0, POINTS // 2)[random.integers(2)]]
    else:
        at, held = taste.places[random.integers(PLACES)], part.mean(axis=1)
    placed: Floats = part - held + at
    return placed


def _fit_into_square(strokes: Floats) -> Floats:
    """Scale the strokes of a character to fill the unit square.

    The axes are scaled independently, but a shorter side by at most 1 / 0.6 times the factor of the longer side.
    """
    flat = strokes.reshape(-1, 2)
    low, size = flat.min(axis=0), np.ptp(flat, axis=0)
    fitted: Floats = (strokes - low - size / 2) / np.maximum(size, 0.6 * size.max()) + 0.5
    return fitted


def _length(strokes: Floats) -> float:
    return float(np.linalg.norm(np.diff(strokes, axis=1), axis=-1).sum())


def _coarse_image(strokes: Floats) -> Floats:
    """Render a character at SEEN x SEEN pixels as a unit vector (SEEN * SEEN,); cosines of these measure similarity."""
    blurred = drawn(strokes[None] * 0.7 + 0.15, np.ones((1, len(strokes)), bool), np.array([0.12]), SEEN)
    pixels = blurred.ravel().astype(np.float64)
    look: Floats = pixels / np.linalg.norm(pixels)
    return look
