"""Row of birds, two images each of three species: photographs if CUB-200-2011 is on this machine, else drawings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

import numpy as np

from dmlcore import data
from dmlcore.data import DataError, report
from dmlcore.data.synthetic.birds import birds
from dmlcore.data.synthetic.birds.species import guide
from dmlcore.inspection.images import data_uri, fit_into
from dmlcore.typing import Pixels
from pages.shared.state.cache import cached

SPECIES, IMAGES, SIDE = (50, 55, 66), (1, 2), 96  # numbers of drawn species, samples of each, pixels per side
PHOTOGRAPHS, DRAWINGS = "cub", "birds"
STYLE = """<style>
.bird-row { display: grid; grid-template-columns: repeat(6, 1fr); gap: 4px; }
.bird-row img { display: block; width: 100%; aspect-ratio: 1; object-fit: cover; border-radius: var(--corner); }
</style>"""


@dataclass(frozen=True)
class BirdRow:
    """Row of birds: the data set that they are from, a sentence about them, and their HTML."""

    data: str
    words: str
    html: str


def row() -> BirdRow:
    """Return the row of birds to show. Photographs that cannot be read are replaced by drawings."""
    try:
        place = data.available(PHOTOGRAPHS)
        if place is not None and not report.is_packed(place):
            return _photographs(place, place.stat().st_mtime_ns)
    except (DataError, OSError):
        pass
    return _drawings()


@cached(1)
def _photographs(place: Path, changed: int) -> BirdRow:
    """Return photographs of evenly spaced test species; `changed` is part of the cache key only.

    Raises:
        DataError: If there are no lists, images are missing, or too few species have several images.
    """
    samples = data.read(PHOTOGRAPHS, root=place)
    species, counts = np.unique(samples.labels, return_counts=True)
    several = np.flatnonzero((species >= samples.train_classes) & (counts > max(IMAGES)))
    if samples.image is None or len(several) < len(SPECIES):
        raise DataError("too few species with several images")
    order = np.argsort(samples.labels, kind="stable")
    first = np.cumsum(counts) - counts
    chosen = several[np.linspace(0, len(several) - 1, len(SPECIES)).astype(int)]
    title = data.describe(PHOTOGRAPHS).title
    return BirdRow(
        PHOTOGRAPHS,
        f"Train on birds of {title}",
        _html(
            [(samples.class_names[species[one]], order[first[one] + image]) for one in chosen for image in IMAGES],
            samples.image,
        ),
    )


@cache
def _drawings() -> BirdRow:
    """Return drawings of three species; drawing them takes less than a second, once per process."""
    species = guide()
    labels = np.repeat(np.arange(len(species)), birds.PER_CLASS)
    shown = [(species[one].name, birds.PER_CLASS * one + image) for one in SPECIES for image in IMAGES]
    return BirdRow(
        DRAWINGS,
        "Train on drawn birds",
        _html(shown, lambda index: birds.image(labels, 0, SIDE, index)),
    )


def _html(shown: list[tuple[str, int]], image: Callable[[int], Pixels]) -> str:
    """Return HTML with the images of samples, given as (name of the species, index)."""
    tiles = "".join(
        f'<img src="{data_uri(fit_into(image(int(index)), SIDE))}" alt="{escape(name)}" title="{escape(name)}">'
        for name, index in shown
    )
    return f'{STYLE}<div class="bird-row">{tiles}</div>'
