"""Catalogue of 72 drawn species, which share body plans, colours and marks in different combinations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

GUIDE_SEED = 23  # seed for generating the species, independent of the seed for drawing the images
SCHEMES, SISTERS = 4, 2  # number of colour schemes per family; number of species per colour scheme

Colour = tuple[int, int, int]
COLOURS: dict[str, Colour] = {
    "black": (32, 30, 34),
    "slate": (84, 94, 110),
    "ash": (152, 154, 158),
    "white": (240, 240, 236),
    "buff": (222, 190, 140),
    "brown": (116, 84, 58),
    "rufous": (180, 92, 44),
    "olive": (112, 118, 52),
    "green": (58, 132, 72),
    "yellow": (238, 204, 52),
    "orange": (232, 132, 36),
    "red": (202, 44, 40),
    "blue": (48, 84, 176),
    "azure": (98, 170, 222),
    "violet": (116, 72, 152),
    "pink": (232, 150, 168),
}
UPPER = ("black", "slate", "ash", "brown", "rufous", "olive", "green", "blue", "azure", "violet")
UNDER = ("white", "white", "buff", "ash", "yellow", "orange", "pink", "rufous")
ACCENT = ("black", "white", "yellow", "orange", "red", "blue", "rufous")
BILL = ("black", "slate", "yellow", "orange", "red")
# plumage mark -> adjective that describes it in the name of a species
MARKS = {
    "crest": "crested",
    "cap": "capped",
    "mask": "masked",
    "brow": "browed",
    "throat": "throated",
    "collar": "collared",
    "spots": "spotted",
    "streaks": "streaked",
    "band": "banded",
    "bars": "barred",
    "tail_tip": "tailed",
    "eye_ring": "ringed",
}
PARTS = ("upper", "under", "wing", "head", "accent", "bill", "leg")  # body parts that have their own colour
ON_HEAD = ("cap", "mask", "brow", "throat", "eye_ring")


@dataclass(frozen=True)
class Family:
    """Body proportions of a family of birds; lengths are in body lengths, angles in degrees above the horizon."""

    name: str
    depth: float  # half the thickness of the body, in body lengths
    posture: float
    neck: float  # length of the neck
    neck_angle: float
    head: float  # radius of the head
    bill: str  # shape of the bill: cone, needle, chisel, dagger or flat
    bill_length: float  # in head radii
    tail: float
    tail_width: float
    wing: float  # length of the folded wing beyond the rump, in body lengths
    leg: float


FAMILIES = (
    Family("finch", 0.29, 28, 0.14, 55, 0.205, "cone", 0.75, 0.44, 0.10, 0.10, 0.20),
    Family("warbler", 0.23, 22, 0.13, 50, 0.175, "needle", 0.70, 0.46, 0.08, 0.12, 0.26),
    Family("thrush", 0.26, 38, 0.18, 60, 0.175, "needle", 0.95, 0.50, 0.10, 0.16, 0.36),
    Family("jay", 0.24, 30, 0.17, 55, 0.195, "chisel", 0.95, 0.88, 0.12, 0.12, 0.28),
    Family("woodpecker", 0.21, 66, 0.17, 78, 0.185, "chisel", 1.45, 0.48, 0.09, 0.20, 0.12),
    Family("kingfisher", 0.27, 42, 0.10, 55, 0.255, "dagger", 1.75, 0.26, 0.09, 0.10, 0.09),
    Family("tern", 0.17, 8, 0.12, 35, 0.145, "dagger", 1.20, 0.58, 0.07, 0.46, 0.14),
    Family("duck", 0.27, 8, 0.30, 68, 0.180, "flat", 1.15, 0.22, 0.10, 0.12, 0.13),
    Family("heron", 0.20, 30, 0.62, 72, 0.125, "dagger", 2.30, 0.22, 0.09, 0.18, 0.70),
)


@dataclass(frozen=True)
class Species:
    """Bird species with the features that distinguish it; each species is one class of the data set."""

    name: str
    family: Family
    # name of the colour of this body part; the same applies to `under`, `wing`, `head`, `accent`, `bill` and `leg`
    upper: str
    under: str
    wing: str
    head: str
    accent: str  # colour of all marks
    bill: str
    leg: str
    marks: frozenset[str]
    fork: float  # shape of the tail: -0.3 rounded, 0 square, 1 forked
    stretch: float  # length of tail and bill, relative to the values of the family

    def colour(self, part: str) -> Colour:
        """Return the RGB colour of a body part, which is one of PARTS."""
        return COLOURS[getattr(self, part)]


@cache
def guide() -> tuple[Species, ...]:
    """Return the 72 species; the first half has two colour schemes per family, the second half the two others."""
    random = np.random.default_rng(GUIDE_SEED)
    schemes: list[list[Species]] = [[] for _ in range(SCHEMES)]
    for family in FAMILIES:
        for scheme, upper in zip(schemes, random.permutation(UPPER)[:SCHEMES].tolist(), strict=True):
            scheme.extend(_sisters(family, upper, random))
    return tuple(species for scheme in schemes for species in scheme)


def _sisters(family: Family, upper: str, random: np.random.Generator) -> list[Species]:
    """Return two species of a family with the same colours but different marks; tail, bill and legs may differ."""
    pick = random.choice
    under = str(pick([colour for colour in UNDER if colour != upper]))
    wing = str(pick([upper, upper, "black" if upper != "black" else "brown"]))
    accent = str(pick([colour for colour in ACCENT if colour not in (upper, under, wing)]))
    head = str(pick([upper, upper, under, accent]))
    signs = random.permutation([mark for mark in MARKS if head != accent or mark not in ON_HEAD])
    more = signs[SISTERS:]
    return [
        Species(
            name=f"{accent.capitalize()}-{MARKS[sign]} {upper} {family.name}",
            family=family,
            upper=upper,
            under=under,
            wing=wing,
            head=head,
            accent=accent,
            bill=str(pick(BILL)),
            leg=str(pick(BILL)),
            marks=frozenset([sign, *random.choice(more, 2, replace=False).tolist()]),
            fork=float(pick([-0.3, 0.0, 0.5, 1.0])),
            stretch=float(pick([0.85, 1.0, 1.2])),
        )
        for sign in signs[:SISTERS].tolist()
    ]
