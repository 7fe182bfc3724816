"""State of the Transport page (map, prototypes, mu, epsilon, sweeps), parsed from untrusted URLs and messages.

A feature is a mixture of colours and is encoded as the integer red * (STEPS + 1) + blue, with the shares of red and
blue in units of 1/STEPS. A URL holds a painted map as runs of equal pixels, three letters per run: 15 bits for the code
and 3 bits for the length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Annotated, Any

import numpy as np

from dmlcore.pooling.analysis.red_blue import MAPS, SIDE, STEPS, mixture
from dmlcore.typing import Floats, Ints
from pages.shared.state import untrusted
from pages.shared.state.page_state import Kind, NumberKind, PageState, Preset, Whole

PIXELS = SIDE * SIDE
MOST_PROTOTYPES = 8
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
LONGEST_RUN = 8
Codes = tuple[int, ...]
MAP_TITLES = {
    "figure": "two blocks (Fig. 5.2)",
    "cross": "a cross",
    "object": "a small object",
    "noise": "noise",
    "equal": "all equal",
}


def code(red: int, blue: int) -> int:
    """Return the integer code of a feature whose shares of red and blue are given in steps of 1/STEPS."""
    return red * (STEPS + 1) + blue


def steps(codes: Sequence[int]) -> Ints:
    """Decode n feature codes to shares of red and blue in steps of 1/STEPS, shape (n, 2)."""
    return np.stack(np.divmod(np.array(codes, dtype=np.int64), STEPS + 1), -1)


@cache
def map_codes(name: str) -> Codes:
    """Return the feature codes of the map `name` in `red_blue.MAPS`, row by row."""
    return tuple(code(int(r), int(b)) for r, b in MAPS[name]().reshape(-1, 2))


RED, BLUE = code(STEPS, 0), code(0, STEPS)


class FeaturesKind(Kind):
    """State field for up to MOST_PROTOTYPES feature codes; a URL holds the shares of red and blue of each feature."""

    most = MOST_PROTOTYPES

    def read(self, value: Any, default: Any) -> Any:
        if not isinstance(value, (list, tuple)) or not 0 < len(value) <= self.most:
            return default
        if not all(isinstance(x, int) and not isinstance(x, bool) and 0 <= x <= code(STEPS, 0) for x in value):
            return default
        return tuple(value) if (steps(value).sum(-1) <= STEPS).all() else default

    def parse(self, text: str) -> Any:
        return [_placed(part) for part in text[:400].split(";")]

    def text(self, value: Any) -> str:
        return ";".join(f"{r / STEPS:g},{b / STEPS:g}" for r, b in steps(value))

    def json(self, value: Any) -> Any:
        return list(value)


class MapKind(FeaturesKind):
    """State field for the feature codes of all pixels of a map.

    A URL holds the name of the map if it is predefined, else its painted pixels.
    """

    most = PIXELS

    def read(self, value: Any, default: Any) -> Any:
        places = super().read(value, default)
        return places if len(places) == PIXELS else default

    def from_query(self, name: str, query: Mapping[str, str]) -> Any:
        named = map_codes(query["map"]) if query.get("map") in MAPS else None
        return decode_runs(query.get("paint", "")) or named

    def to_query(self, name: str, state: Any, default: Any) -> dict[str, str]:
        if state.pixels == default.pixels:
            return {}
        named = next((each for each in MAPS if map_codes(each) == state.pixels), None)
        return {"map": named} if named else {"paint": encode_runs(state.pixels)}


@dataclass(frozen=True)
class TransportState(PageState):
    """State of the Transport page, from which all results on the page are computed."""

    pixels: Annotated[Codes, MapKind()] = field(default_factory=lambda: map_codes("figure"))
    prototypes: Annotated[Codes, FeaturesKind()] = (RED, BLUE)
    mu: Annotated[float, NumberKind(0.01, 1.0)] = 0.2
    epsilon: Annotated[float, NumberKind(0.1, 450.0)] = 5.0
    sweeps: Annotated[int, Whole(1, 400)] = 100

    def features(self) -> Floats:
        """Return the feature vectors of the pixels, shape (100, 3)."""
        return mixture(steps(self.pixels))

    def centres(self) -> Floats:
        """Return the feature vectors of the prototypes, shape (m, 3)."""
        return mixture(steps(self.prototypes))


def _placed(text: str) -> int | None:
    """Return the feature code for a text "red,blue" with shares in 0..1, rounded to 1/STEPS; None if malformed."""
    parts = [untrusted.finite(part) for part in text.split(",")]
    if len(parts) != 2 or parts[0] is None or parts[1] is None:
        return None
    red, blue = (round(STEPS * min(max(part, 0.0), 1.0)) for part in (parts[0], parts[1]))
    return code(red, min(blue, STEPS - red))


def encode_runs(codes: Codes) -> str:
    """Encode feature codes as text: three letters per run of equal codes, at most LONGEST_RUN codes per run."""
    text = ""
    for value, run in groupby(codes):
        left = len(list(run))
        while left:
            length = min(left, LONGEST_RUN)
            bits = value * LONGEST_RUN + length - 1
            text += LETTERS[bits >> 12] + LETTERS[bits >> 6 & 63] + LETTERS[bits & 63]
            left -= length
    return text


def decode_runs(text: str) -> list[int] | None:
    """Decode a text made by `encode_runs`; return None if it is malformed or longer than PIXELS runs."""
    if len(text) % 3 or len(text) > 3 * PIXELS or not set(text) <= set(LETTERS):
        return None
    runs: list[int] = []
    for k in range(0, len(text), 3):
        high, middle, low = (LETTERS.index(letter) for letter in text[k : k + 3])
        bits = high << 12 | middle << 6 | low
        runs += [bits // LONGEST_RUN] * (bits % LONGEST_RUN + 1)
    return runs


PRESETS = (
    Preset(
        "The figure",
        "Two blocks that fade, and mass for 20 of 100 pixels. The linear programme keeps 20 of the 50 informative "
        "pixels; the smoothed problem keeps all 50.",
    ),
    Preset(
        "ε → 0 gives average pooling",
        "At ε = 0.1 the costs hardly matter: all pixels get nearly the same weight, and one sweep multiplies the error "
        "by about μ.",
        "epsilon=0.1",
    ),
    Preset(
        "ε → ∞ gives the linear programme",
        "At ε = 450 the gate is nearly a step function and the weights nearly equal those of the linear programme. 100 "
        "sweeps are far too few.",
        "epsilon=450",
    ),
    Preset(
        "μ = 1 keeps everything",
        "Nothing may be left out, so every weight is 1/n, as in average pooling. The sweeps converge slowly, as 1/K.",
        "mu=1",
    ),
    Preset(
        "A small object",
        "Nine of 100 pixels are informative. With μ = 0.09 the gate pools only these; the average is mostly "
        "background.",
        "map=object&mu=0.09&epsilon=20",
    ),
    Preset(
        "Slow sweeps",
        "Much mass and a hard selection: μ = 0.9, ε = 20. After five sweeps the weights do not even sum to 1.",
        "mu=0.9&epsilon=20&sweeps=5",
    ),
    Preset(
        "No prototype for the blue block",
        "With only a red prototype the gate keeps the red block; blue is as far from it as the background.",
        "prototypes=1,0&epsilon=20",
    ),
    Preset(
        "All pixels equal",
        "With equal costs there is nothing to select: the smoothed weights are 1/n at every ε. The linear programme "
        "has many solutions; the first pixels are taken.",
        "map=equal",
    ),
)


def options() -> dict[str, Any]:
    """Return the maps, presets and limits for the page's component."""
    return {
        "maps": {name: {"title": title, "pixels": map_codes(name)} for name, title in MAP_TITLES.items()},
        "presets": [p.to_json(TransportState) for p in PRESETS],
        "limits": TransportState.limits() | {"prototypes": MOST_PROTOTYPES},
    }
