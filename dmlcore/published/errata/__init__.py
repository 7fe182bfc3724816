"""The errata of Karaman 2021: what is printed, what is true, and how each was checked. The texts are in errata.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

Kind = Literal["gradient", "formula", "number", "text"]
KINDS: tuple[Kind, ...] = get_args(Kind)

METHODS = {
    "AG": "automatic differentiation in float64, 1e-11",
    "HP": "independent 40-digit recomputation, 4e-12",
    "SY": "symbolic algebra",
    "NE": "direct evaluation of the numbers shown",
    "EN": "enumeration of all triplets of a batch",
    "QD": "area on a grid of 4001 × 4001 nodes",
    "MC": "random sampling",
    "TB": "recomputed from the printed tables",
    "BIB": "bibliography",
    "text": "reading",
}

FOUND_RIGHT = (
    "Equations 2.1-2.7, 2.9, 2.12, 2.18, 2.20, 2.21, 2.24, 2.25, 2.28, 2.29, 2.31, 2.32, 3.2, 3.3",
    "Equations 3.4-3.7, with constant coefficients, by symbolic algebra",
    "Equations 3.9 and 3.13-3.18, by automatic differentiation",
    "Equation 3.19, by enumeration; ρ = 12/7 and the count 2^(2x-y) (2^(x-y)-1) (2^y-1) of valid triplets with it",
    "Equation 3.20, both boundaries, for four pairs (s, r), to 2e-15; the interval after 3.18",
    "Appendix B: B.1, B.3, B.4 and B.5 (as the minimiser of ab), by symbolic algebra; B.6 at r = 0",
    "Tables 4.13 and 4.14 quote earlier rows without a copying error: 19 rows, nine columns",
)


@dataclass(frozen=True)
class PrintedGradient:
    """One gradient of the counter-example as the text states it, to its digits: coordinates as decimal texts."""

    point: str  # anchor | positive | negative
    printed: tuple[str, str]
    true: tuple[str, str]


@dataclass(frozen=True)
class Erratum:
    """One difference between the thesis and the truth; LaTeX marks the differing part by \\diff{...}."""

    number: int
    title: str
    where: str
    kind: Kind
    printed: str
    true: str
    checked: tuple[str, ...]
    printed_latex: str = ""
    true_latex: str = ""
    example: str = ""
    losses: tuple[str, ...] = ()
    shown: tuple[PrintedGradient, ...] = ()
    fields: str = ""  # query of a Fields view that shows the point


@cache
def errata() -> tuple[Erratum, ...]:
    """All errata, by number from 1."""
    table = tomllib.loads(files(__package__).joinpath("errata.toml").read_text("utf-8"))
    return tuple(_entry(row) for row in table["erratum"])


def erratum(number: int) -> Erratum:
    """The erratum of that number; KeyError tells the range."""
    if not 1 <= number <= len(errata()):
        raise KeyError(f"no erratum {number}; they are numbered 1 to {len(errata())}")
    return errata()[number - 1]


def search(kind: str = "", loss: str = "", text: str = "", numbers: frozenset[int] | None = None) -> list[Erratum]:
    """Errata of a kind, about a loss, with every word of `text` (case ignored), among `numbers`; all if empty."""
    words = text.casefold().split()
    return [
        e
        for e in errata()
        if (not kind or e.kind == kind)
        and (not loss or loss in e.losses)
        and (numbers is None or e.number in numbers)
        and all(word in _text(e) for word in words)
    ]


def _text(e: Erratum) -> str:
    text = f"{e.number} {e.title} {e.where} {e.printed} {e.true} {e.example} {' '.join(e.losses)}".casefold()
    return text + text.translate(_SPELT)


_SPELT = str.maketrans({"ρ": "rho", "μ": "mu", "α": "alpha", "π": "pi"})  # letters few keyboards have


def _entry(row: dict[str, Any]) -> Erratum:
    shown = (PrintedGradient(s["point"], tuple(s["printed"]), tuple(s["true"])) for s in row.pop("shown", ()))
    lists: dict[str, Any] = {k: tuple(row.pop(k)) for k in ("checked", "losses") if k in row}
    return Erratum(**row, **lists, shown=tuple(shown))
