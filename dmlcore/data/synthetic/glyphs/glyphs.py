"""Glyphs: invented alphabets written by many writers and tested on unseen alphabets, without a download."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dmlcore.data.dataset import Description, Samples, reader
from dmlcore.data.files import ink
from dmlcore.data.synthetic.drawings import Drawings
from dmlcore.data.synthetic.glyphs import programs as glyph_programs
from dmlcore.data.synthetic.glyphs.drawing import drawn
from dmlcore.data.synthetic.glyphs.programs import STROKES, Programs
from dmlcore.typing import Bools, Floats, Ints, Pixels

IMAGE_SIZE, DISPLAYED = 28, 84  # pixels per side
ALPHABETS = (
    # training alphabets
    *("Aruvel", "Besho", "Cindral", "Dovari", "Emneth", "Farsku", "Gilowa", "Hestran"),
    *("Ionteq", "Jurimba", "Kaldoon", "Lirbash", "Meyvor"),  # test alphabets
)
# number of training alphabets; the last two of them are for validation, because they contain the last quarter of the
# training classes
TRAIN_ALPHABETS = 8
CHARACTERS, HANDS = 24, 20  # number of characters per alphabet; number of writers per character
INVENTED = 2015  # seed of the alphabets, which do not depend on the seed of a training run

# Standard deviations of the variation; pairs are (between writers, between characters of a writer). Calibrated only on
# raw inputs, the untrained network and the validation alphabets: docs/studies.md.
SLANT, TURN = (0.25, 0.12), (0.05, 0.10)  # standard deviations of the horizontal and vertical shear
# standard deviations of the logarithms of width, height and size
WIDTH, HEIGHT, SIZE = (0.12, 0.12), (0.06, 0.06), (0.10, 0.05)
PEN = (0.20, 0.07)  # standard deviations of the logarithm of the line width
BEND = 0.24  # standard deviation of the coefficients of x^2, xy and y^2, which bend the whole character
# standard deviations of: position of a character, position of a stroke, length of a stroke, position of control points
PLACE, STROKE, LENGTH, POINT = 0.04, 0.05, 0.10, 0.05
OMITTED = 0.03  # probability that a stroke is omitted from a character with at least three strokes
LINE, SPACE = 0.06, 0.66  # mean width of the line and of a character, as fractions of the image side
EDGE = 0.08  # minimum distance between the centre line of a stroke and the image edge, as a fraction of the image side

INFO = Description(
    name="glyphs",
    title="Glyphs",
    sentence="Characters of 13 invented alphabets by twenty simulated writers; tested on unseen alphabets.",
    citation="Drawn by DML Lab, after Lake, Salakhutdinov, Tenenbaum: Human-level concept learning through "
    "probabilistic program induction. Science 350, 2015.",
    kind="images",
    image_size=IMAGE_SIZE,
    channels=1,
    resizes=True,
)


class Writing(NamedTuple):
    """Characters of all writers as arguments of `drawn`: points (N, STROKES, 5, 2), has (N, STROKES), pen (N,)."""

    points: Floats
    has: Bools
    pen: Floats

    def draw(self, side: int, rows: Ints) -> Pixels:
        """Return the images (n, 1, side, side) of the samples with indices `rows`."""
        return drawn(self.points[rows], self.has[rows], self.pen[rows], side)[:, None]

    def image(self, index: int) -> Pixels:
        """Return sample `index` as an image for display, (DISPLAYED, DISPLAYED, 3) uint8."""
        return ink.image(self.draw(DISPLAYED, np.array([index])), 0)


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Return characters as varied by writers; `seed` determines the writers but not the ideal characters.

    Images are drawn when they are accessed. Inputs are (N, 1, S, S) uint8, 0 for paper and 255 for ink. Facts:
    `alphabet` (N,) in 0..12; `hand` (N,), number of the writer, from 1. Classes are named like "Aruvel 07".
    """
    programs = glyph_programs.invent(len(ALPHABETS), CHARACTERS, INVENTED)
    classes, side = len(programs.has), image_size or IMAGE_SIZE
    hands = [write(programs, np.random.default_rng([seed, hand])) for hand in range(HANDS)]
    written = Writing(
        *(np.stack(writers, axis=1).reshape(-1, *writers[0].shape[1:]) for writers in zip(*hands, strict=True))
    )
    return Samples(
        inputs=Drawings(
            (classes * HANDS, 1, side, side), partial(written.draw, side), lambda index: f"{seed} {index}".encode()
        ),
        labels=np.repeat(np.arange(classes), HANDS),
        class_names=tuple(f"{name} {number:02}" for name in ALPHABETS for number in range(1, CHARACTERS + 1)),
        train_classes=TRAIN_ALPHABETS * CHARACTERS,
        image=written.image,
        facts={
            "alphabet": np.repeat(np.arange(len(ALPHABETS)), CHARACTERS * HANDS),
            "hand": np.tile(np.arange(1, HANDS + 1), classes),
        },
    )


def write(programs: Programs, random: np.random.Generator) -> Writing:
    """Return all characters as varied by one writer; the habits of the writer are drawn from `random`."""
    count = len(programs.has)

    def habit(deviations: tuple[float, float]) -> Floats:
        own, each = deviations
        values: Floats = own * random.standard_normal() + each * random.standard_normal(count)
        return values

    def play(deviation: float, *shape: int) -> Floats:
        return deviation * random.standard_normal((count, *shape))

    points = programs.points - 0.5
    points = points + play(POINT, *points.shape[1:]) + play(STROKE, STROKES, 1, 2)
    middles = points.mean(axis=2, keepdims=True)
    points = middles + (points - middles) * (1 + play(LENGTH, STROKES, 1, 1))
    x, y = points[..., 0], points[..., 1]
    points = points + np.einsum("cspk,cdk->cspd", np.stack([x * x, x * y, y * y], axis=-1), play(BEND, 2, 3))
    size, wide, high = np.exp(habit(SIZE)), np.exp(habit(WIDTH)), np.exp(habit(HEIGHT))
    rows = np.stack([wide, habit(SLANT)], axis=-1), np.stack([habit(TURN), high], axis=-1)
    affine = np.stack(rows, axis=1) * size[:, None, None]
    points = SPACE * np.einsum("cspk,cdk->cspd", points, affine) + play(PLACE, 1, 1, 2)
    omitted = (random.random(programs.has.shape) < OMITTED) & (programs.has.sum(axis=1, keepdims=True) > 2)
    has = programs.has & ~omitted
    return Writing(_fit_into_square(points, has), has, LINE * np.exp(habit(PEN)))


def _fit_into_square(points: Floats, has: Bools) -> Floats:
    """Shift points centred at 0 into the unit square with a margin of EDGE; shrink characters that are too large."""
    most = 0.5 - EDGE
    there = np.broadcast_to(has[:, :, None, None], points.shape)
    low = points.min(axis=(1, 2), keepdims=True, initial=np.inf, where=there)
    high = points.max(axis=(1, 2), keepdims=True, initial=-np.inf, where=there)
    scale = np.minimum(1, 2 * most / (high - low))
    low, high = low * scale, high * scale
    inside: Floats = points * scale + np.maximum(-most - low, 0) + np.minimum(most - high, 0) + 0.5
    return inside
