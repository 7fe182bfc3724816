"""Metadata columns of a data set as attributes of a map: categories, or values on a continuous scale."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dmlcore.data.printable import printable
from dmlcore.figures.maps import palette
from dmlcore.inspection.metadata import MAX_NAME, text_of
from dmlcore.typing import Array, Bools, Floats, Ints
from pages.inspection.explore.colourings import NOWHERE, Column

MOST_COLUMNS = 20  # maximum number of metadata columns that the map offers
MOST_NAMES = 20  # maximum number of categories of a column of text; the other values form one more
FEW = 12  # a column with at most this many different numbers has categories
STEPS = 254  # number of the highest value of a scale
OUTLIERS = 0.01  # share of the values at each end that lie outside the scale if they would compress it
COMPRESSED = 3.0  # factor by which they would have to compress it
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?Z?")


def column(values: Array) -> Column:
    """Return a metadata column as an attribute of the points of a map.

    Text and few different numbers become categories, and other numbers and dates a continuous scale. Missing values,
    which are empty texts and NaN, are undefined.

    Args:
        values: One text or number per point, shape (n,).
    """
    if values.dtype.kind == "U":
        return _text(values)
    numbers = values.astype(np.float64)
    known = ~np.isnan(numbers)
    distinct = np.unique(numbers[known])
    if len(distinct) <= FEW:
        codes = np.where(known, np.searchsorted(distinct, numbers), NOWHERE)
        return Column(codes.astype(np.uint8), {"names": [text_of(value) for value in distinct.tolist()]})
    return _scale(numbers, known)


def _text(values: Array) -> Column:
    known = values != ""
    names, code, counts = np.unique(values[known], return_inverse=True, return_counts=True)
    if len(names) > MOST_NAMES and all(_DATE.fullmatch(name) for name in names.tolist()):
        dated = _dates(names)
        if dated is not None:
            seconds = np.full(len(values), np.nan)
            seconds[known] = dated[code]
            return _scale(seconds, known, {"dates": True})
    frequent = np.argsort(-counts, kind="stable")[:MOST_NAMES]
    listed = np.array(sorted(frequent.tolist(), key=lambda k: _natural(str(names[k]))), np.int64)
    if len(names) > MOST_NAMES and counts.max() == 1:
        listed = listed[:0]  # no value describes more than one sample
    shown = [printable(str(name), MAX_NAME) for name in names[listed]]
    number = np.full(len(names), len(listed))
    number[listed] = np.arange(len(listed))
    codes = np.full(len(values), NOWHERE)
    codes[known] = number[code]
    left = len(names) - len(listed)
    others = [f"{left:,} {'other' if shown else 'different'} values"] if left else []
    facts: dict[str, Any] = {"names": shown + others, "colours": palette(len(shown)) if shown else []}
    return Column(codes.astype(np.uint8), facts)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that orders "shop 2" before "shop 10"."""
    parts = re.split(r"([0-9]{1,18})", name.casefold())
    return [(1, 0, text) if number % 2 == 0 else (0, int(text), text) for number, text in enumerate(parts)]


def _dates(names: Array) -> Floats | None:
    """Return dates as seconds since 1970; None if one of them does not exist, such as 2025-02-30."""
    try:
        stamps = np.array([name.rstrip("Z") for name in names.tolist()], "datetime64[s]")
    except ValueError:
        return None
    return stamps.astype(np.int64).astype(np.float64)


def _scale(numbers: Floats, known: Bools, more: dict[str, Any] | None = None) -> Column:
    """Return numbers (n,) on a scale; values beyond its ends, and infinite ones, are at its ends."""
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    inner = np.quantile(finite, [OUTLIERS, 1 - OUTLIERS]).tolist() if len(finite) else [low, high]
    if high - low > COMPRESSED * (inner[1] - inner[0]) > 0:
        low, high = inner
    with np.errstate(over="ignore", invalid="ignore"):
        share = np.clip((numbers / 2 - low / 2) / ((high / 2 - low / 2) or 1.0), 0, 1)
    codes: Ints = np.where(known, np.rint(STEPS * np.nan_to_num(share)), NOWHERE).astype(np.int64)
    facts = {"range": [low, high], "outside": [bool((numbers < low).any()), bool((numbers > high).any())]}
    return Column(codes.astype(np.uint8), facts | (more or {}))
