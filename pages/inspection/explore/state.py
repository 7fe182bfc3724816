"""Display settings of the map and its image panel, stored in the URL: colour, filters, window, and opened sample."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pages.inspection.explore.colourings import NOWHERE
from pages.inspection.explore.metadata import MOST_COLUMNS
from pages.shared.state import untrusted
from pages.shared.state.page_state import ChoiceKind, Flag, Kind, Numbers, PageState, Whole

# Colourings of the map by column; `colourings.columns` computes the columns, and their colours and shapes are in
# assets/src/inspection/explore/legend.ts.
COLOURS = {
    "class": "class",
    "right": "right or wrong",
    "rank": "rank of the first hit",
    "hubness": "hubness",
    "doubted": "doubted label",
    "split": "split",
    "tags": "tags",
    "purity": "neighbour purity",
    "density": "density",
}
NEED_LABELS = ("class", "right", "rank", "doubted", "purity")
METADATA = "meta-"  # colouring by a metadata column: this prefix and the number of the column
ORDERS = {
    "class": "by class",
    "rank": "worst first (highest rank of the first hit)",
    "hubness": "most often retrieved first",
    "sample": "data set order",
}
LABELLESS = ("sample", "hubness")  # orders of samples without labels
MOST_CLASSES, MOST_CODES, MOST_TAGS, MOST_METADATA = 50, 8, 24, 100
MOST_SAMPLE = 10**9 - 1
CLOSEST = 200.0  # zoom
_METADATA_FILTER = re.compile(r"(0|[1-9]\d?)-(0|[1-9]\d{0,2})(?:-(0|[1-9]\d{0,2}))?", re.ASCII)


@dataclass(frozen=True)
class Listed(Kind):
    """State field for several values, separated by commas in a URL.

    Attributes:
        one: Returns the valid form of a value, or None if it is invalid.
        most: Maximum number of values.
    """

    one: Callable[[Any], Any]
    most: int

    def read(self, value: Any, default: Any) -> Any:
        given = value[: self.most] if isinstance(value, (list, tuple)) else default
        return tuple(dict.fromkeys(x for x in map(self.one, given) if x is not None))

    def parse(self, text: str) -> Any:
        return text[:1000].split(",", self.most)

    def text(self, value: Any) -> str:
        return ",".join(map(str, value))

    def json(self, value: Any) -> Any:
        return list(value)


@dataclass(frozen=True)
class MapWindow(Numbers):
    """State field for the visible window of the map: centre (x, y) as fractions of the square 0..1, and zoom factor."""

    def read(self, value: Any, default: Any) -> Any:
        x, y, zoom = super().read(value, default)
        return min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0), min(max(zoom, 1.0), CLOSEST)

    def json(self, value: Any) -> Any:
        return list(value)


@dataclass(frozen=True)
class Colour(ChoiceKind):
    """State field for a colouring: one of `options`, or a metadata column by its number."""

    def read(self, value: Any, default: Any) -> Any:
        return value if _metadata_number(value) is not None else super().read(value, default)


def menus(*, labels: bool, gallery: bool, metadata: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the titles of the colourings and of the orders that a map offers, by their names.

    Args:
        labels: False if the samples have no labels.
        gallery: True if some samples are searched without being queries.
        metadata: Names of the metadata columns.
    """
    colours = {name: title for name, title in COLOURS.items() if labels or name not in NEED_LABELS}
    if not labels:
        colours = {"density": colours.pop("density")} | colours  # the first one is the default
    if not labels and not gallery:
        del colours["split"]
    colours |= {f"{METADATA}{number}": name for number, name in enumerate(metadata)}
    return {"colour": colours, "sort": ORDERS if labels else {name: ORDERS[name] for name in LABELLESS}}


def _metadata_number(value: Any) -> int | None:
    digits = value.removeprefix(METADATA) if isinstance(value, str) and value.startswith(METADATA) else ""
    valid = digits.isascii() and digits.isdigit() and len(digits) < 3 and str(int(digits)) == digits
    return int(digits) if valid and int(digits) < MOST_COLUMNS else None


def _metadata_filter(value: Any) -> str | None:
    """Return a filter on a metadata column, "NUMBER-CODE" or "NUMBER-LOW-HIGH", if it is valid."""
    match = _METADATA_FILTER.fullmatch(value) if isinstance(value, str) else None
    if not match or int(match[1]) >= MOST_COLUMNS or max(map(int, filter(None, match.groups()[1:]))) > NOWHERE:
        return None
    return match[0]


def _number(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_SAMPLE else None


def _name(value: Any) -> str | None:
    valid = isinstance(value, str) and 0 < len(value) <= 40 and value.isprintable() and "," not in value
    return value if valid else None


Codes = Listed(_number, MOST_CODES)


@dataclass(frozen=True)
class Look(PageState):
    """Display settings of the map and its image panel, which shows the samples that the map highlights."""

    colour: Annotated[str, Colour(COLOURS)] = "class"
    # labels of the classes to highlight; all if empty
    classes: Annotated[tuple[int, ...], Listed(_number, MOST_CLASSES)] = ()
    # values of each column to highlight; all if empty
    right: Annotated[tuple[int, ...], Listed(_number, MOST_CODES, key="verdict")] = ()
    rank: Annotated[tuple[int, ...], Codes] = ()
    hubness: Annotated[tuple[int, ...], Codes] = ()
    doubted: Annotated[tuple[int, ...], Codes] = ()
    split: Annotated[tuple[int, ...], Codes] = ()
    # filters on metadata columns: "NUMBER-CODE" for a category, "NUMBER-LOW-HIGH" for an interval of a scale
    meta: Annotated[tuple[str, ...], Listed(_metadata_filter, MOST_METADATA)] = ()
    tags: Annotated[tuple[str, ...], Listed(_name, MOST_TAGS)] = ()
    sort: Annotated[str, ChoiceKind(ORDERS)] = "class"
    size: Annotated[int, Whole(28, 200)] = 56  # image size in pixels
    names: Annotated[bool, Flag()] = True
    images: Annotated[bool, Flag()] = True
    contours: Annotated[bool, Flag()] = False
    window: Annotated[tuple[float, ...], MapWindow(reach=untrusted.REACH * 2, key="at")] = (0.5, 0.5, 1.0)
    # data set index of the sample shown in full screen; -1 for none
    sample: Annotated[int, Whole(-1, MOST_SAMPLE)] = -1
