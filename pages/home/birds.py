"""Row of drawn birds: two images each of three species."""

from __future__ import annotations

from functools import cache
from html import escape

import numpy as np

from dmlcore.data.synthetic.birds import birds
from dmlcore.data.synthetic.birds.species import guide
from dmlcore.inspection.images import data_uri, fit_into

SPECIES, IMAGES, SIDE = (50, 55, 66), (1, 2), 96  # numbers of species, samples of each, pixels per side
STYLE = """<style>
.bird-row { display: grid; grid-template-columns: repeat(6, 1fr); gap: 4px; }
.bird-row img { display: block; width: 100%; aspect-ratio: 1; border-radius: var(--corner); }
</style>"""


@cache
def html() -> str:
    """Return HTML with the images; drawing them takes less than a second, once per process."""
    species = guide()
    labels = np.repeat(np.arange(len(species)), birds.PER_CLASS)
    tiles = "".join(
        f'<img src="{data_uri(fit_into(birds.image(labels, 0, SIDE, birds.PER_CLASS * one + image), SIDE))}" '
        f'alt="{escape(species[one].name)}">'
        for one in SPECIES
        for image in IMAGES
    )
    return f'{STYLE}<div class="bird-row">{tiles}</div>'
