"""Checks of the errata of Gürbüz 2022 about settings and about the tables of the thesis."""

from __future__ import annotations

import inspect
import statistics
import tomllib
from collections.abc import Iterable, Mapping
from itertools import product

import numpy as np
import torch

from dmlcore import presets
from dmlcore.data.published_counts import PUBLISHED
from dmlcore.data.readers.cifar import SIDE
from dmlcore.data.synthetic import cifar_collage
from dmlcore.data.synthetic.collage import Recipe
from dmlcore.published.checks.number import Check, Decision, Number, Outcome
from dmlcore.published.checks.printed_tables import cell, printed

SIZES = ("512D", "128D")


def _stitched() -> Iterable[Outcome]:
    recipe = Recipe()
    # number of tiles that show the class, and of background tiles common to all classes
    one, background = recipe.showing, 3
    yield Decision(
        "tiles of a collage", 4 * 4, recipe.tiles, one + background, "1 tile of the class and 3 of background"
    )
    referee = cifar_collage.INFO.image_size or 0
    yield Decision("pixels along a side", 4 * SIDE, recipe.side * SIDE, referee, "Cifar-Collage as loaded here")


def _second_moment() -> Iterable[Outcome]:
    default = inspect.signature(torch.optim.Adam).parameters["betas"].default[1]
    yield Decision("default β₂ of Adam", 0.99, 0.999, float(default), "torch.optim.Adam")


def _patience() -> Iterable[Outcome]:
    protocol = tomllib.loads((presets.PROTOCOLS / "gurbuz-2022-fair-ccp.toml").read_text("utf-8"))["base"]["schedule"]
    updates = protocol["validate_every"] * protocol["patience"]
    yield Decision(
        "updates without a better score before a run on CUB ends", 60, 60 * 25, updates, "the protocol as run here"
    )


# sizes of the source's small and large cross-batch memory, in batches
XBM = {"cub": (3, 25), "inshop": (100, 400), "sop": (400, 1400)}
# proxies per class in the comparisons with the small and the large memory
PROXIES = {"cub": (1, 8), "inshop": (1, 4), "sop": (1, 4)}
BATCH = 32


def _memories() -> Iterable[Outcome]:
    """Compare the number of proxies, counted in batches of 32, with the sizes of the source's cross-batch memories."""
    filled = {
        data: [round(per_class * PUBLISHED[data]["train"].classes / BATCH) for per_class in counts]
        for data, counts in PROXIES.items()
    }
    for data, title, stated in (
        ("cub", "CUB", ("3", "25")),
        ("inshop", "In-shop", ("125", "500")),
        ("sop", "SOP", ("354", "1415")),
    ):
        for per_class, text, batches in zip(PROXIES[data], stated, filled[data], strict=True):
            yield Number(f"batches that the proxies of {title} fill, {per_class} per class", text, batches)
    matching = sum(a == b for data, used in XBM.items() for a, b in zip(used, filled[data], strict=True))
    yield Number("memories, of six, that are as large as the proxies", "2", matching)


def _edition() -> Iterable[Outcome]:
    """Predict the printed P@1 of SoftTriple from its MAP@R with a line fitted to the other methods.

    The other edition of the thesis, which prints another P@1, is not among the tables.
    """
    rows = [row for row in printed("G-3.1").rows if (row.dataset, row.size) == ("CUB-200-2011", "512D")]
    scores = {row.method: (float(row.values["MAP@R"] or 0), float(row.values["P@1"] or 0)) for row in rows}
    at, here = scores.pop("SoftTriple-S/L")
    x, y = np.array(list(scores.values())).T
    line = np.polynomial.Polynomial.fit(x, y, 1)
    yield Number("P@1 of SoftTriple on CUB, 512D, in Table 3.1", "66.12", here)
    yield Number(f"P@1 predicted from its MAP@R of {at:g} by the {len(scores)} other methods", "67.17", float(line(at)))
    off = float(np.abs(y - line(x)).max())
    yield Number("largest deviation of the others from that line", "0.62", off)
    cells = sum(len(row.values) for row in printed("G-3.1").rows)
    yield Number("cells that both editions contain", "208", cells)


def _both_components() -> Iterable[Outcome]:
    where = {"dataset": "CUB-200-2011", "size": "128D"}
    here = cell("G-5.3", "C2", "MAP@R", setting="with both", **where)
    there = cell("G-5.1", "C2+GSP", "MAP@R", **where)
    yield Decision("MAP@R of C2 with both components, CUB, 128D", here, 21.53, there, "Table 5.1")
    others = [
        cell("G-5.3", "C2", "MAP@R", setting="with both", dataset=d, size=s)
        == cell("G-5.1", "C2+GSP", "MAP@R", dataset=d, size=s)
        for d, s in product(printed("G-5.1").datasets, SIZES)
    ]
    yield Number("pairs of cells, of eight, that agree", "7", sum(others))


def _gains_of_ccp() -> Iterable[Outcome]:
    def gains(without: str, methods: tuple[str, ...]) -> list[float]:
        return [
            cell("G-3.1", f"{m}+CCP-L", "MAP@R", dataset=d, size=s)
            - cell("G-3.1", m + without, "MAP@R", dataset=d, size=s)
            for m, d, s in product(methods, printed("G-3.1").datasets, SIZES)
        ]

    alone, over_xbm = gains("", ("C1", "C2", "MS", "Triplet")), gains("+XBM-L", ("C1", "C2"))
    by = "Table 3.1"
    yield Decision("least gain over the loss alone", 1.0, 0.80, min(alone), by, tolerance=0.005)
    yield Decision("largest gain over the loss alone", 11.0, 12.48, max(alone), by, tolerance=0.005)
    yield Decision("least gain over the same loss with XBM", 1.0, 0.13, min(over_xbm), by, tolerance=0.005)


def _gains_of_pooling() -> Iterable[Outcome]:
    methods = ("C1+XBM", "C1+CCP", "C2", "MS", "Triplet", "PNCA", "PAnchor")
    gains = [
        cell("G-5.1", f"{m}+GSP", "MAP@R", dataset=d, size=s) - cell("G-5.1", m, "MAP@R", dataset=d, size=s)
        for m, d, s in product(methods, printed("G-5.1").datasets, SIZES)
    ]
    by = f"{len(gains)} pairs of cells of Table 5.1"
    yield Decision("mean gain in MAP@R", 1.0, 0.78, statistics.fmean(gains), by, tolerance=0.005)
    yield Number("least gain", "-0.04", min(gains))
    yield Number("largest gain", "2.14", max(gains))


def _in_shop() -> Iterable[Outcome]:
    splits = PUBLISHED["inshop"]
    classes = splits["train"].classes + splits["test"].classes  # the gallery has the classes of the queries
    images = sum(split.samples for split in splits.values())
    yield Decision("classes of In-shop", 7_986, 3_997 + 3_985, classes, "the published splits")
    yield Decision("images of In-shop", 72_712, 25_882 + 14_218 + 12_612, images, "the published splits")


CHECKS: Mapping[int, Check] = {
    65: _stitched,
    66: _second_moment,
    67: _patience,
    68: _memories,
    69: _edition,
    70: _both_components,
    71: _gains_of_ccp,
    72: _gains_of_pooling,
    112: _in_shop,
}
