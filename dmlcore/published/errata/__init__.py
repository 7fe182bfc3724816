"""Errata of all sources: printed statement, true statement and methods of checking, in one TOML file per source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from dmlcore.published.table_reader import sources

Kind = Literal["gradient", "formula", "number", "text"]
KINDS: tuple[Kind, ...] = get_args(Kind)

METHODS = {
    "AG": "automatic differentiation in float64, 1e-11",
    "FD": "central differences of the exact solution",
    "HP": "independent 40-digit recomputation, 4e-12",
    "SY": "symbolic algebra",
    "NE": "direct evaluation of the numbers shown",
    "EN": "enumeration of all cases",
    "QD": "area on a grid of 4001 × 4001 nodes",
    "MC": "random sampling",
    "TB": "recomputed from the printed tables",
    "CODE": "the source's own public implementation",
    "BIB": "bibliography",
    "text": "reading",
}

FOUND_RIGHT: Mapping[str, tuple[str, ...]] = {  # statements that were checked and found correct, by source
    "K": (
        "Equations 2.1-2.7, 2.9, 2.12, 2.18, 2.20, 2.21, 2.24, 2.25, 2.28, 2.29, 2.31, 2.32, 3.2, 3.3",
        "Equations 3.4-3.7, with constant coefficients, by symbolic algebra",
        "Equations 3.9 and 3.13-3.18, by automatic differentiation",
        "Equation 3.19, by enumeration; ρ = 12/7 and the count 2^(2x-y) (2^(x-y)-1) (2^y-1) of valid triplets with it",
        "Equation 3.20, both boundaries, for four pairs (s, r), to 2e-15; the interval after 3.18",
        "Appendix B: B.1, B.3, B.4 and B.5 (as the minimiser of ab), by symbolic algebra; B.6 at r = 0",
        "Tables 4.13 and 4.14 quote earlier rows without a copying error: 19 rows, nine columns",
    ),
    "G": (
        "Section 5.2.3: order and shapes of the ridge fit, which is the minimiser of its objective",
        "Equation 5.2.2: the number k itself, by the determinant of H",
        "Table 5.4: the half fraction of 2⁴ in which the product of the four factors is +1",
    ),
    "Z": ("Equations 19 and 20: label smoothing, the same as that of torch",),
    "P": (
        "Equation 2.28: the constant pull of Proxy-NCA, by automatic differentiation",
        "Table 11: all ten totals, by the ranks of Tables 6 to 8",
    ),
}


@dataclass(frozen=True)
class PrintedGradient:
    """Printed and true gradient on one point of a counter-example.

    Coordinates are decimal strings, which a recomputed value must match to the number of digits shown.
    """

    point: str  # anchor | positive | negative
    printed: tuple[str, str]
    true: tuple[str, str]


@dataclass(frozen=True)
class Live:
    """Link to a page that demonstrates an erratum: name of the page, URL query string and link text."""

    page: str
    query: str
    label: str = "See it in Fields"


@dataclass(frozen=True)
class Erratum:
    r"""One error in a source with its correction; in LaTeX, \diff{...} marks the part that differs."""

    source: str  # key of `sources`
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
    live: Live | None = None


@cache
def errata() -> tuple[Erratum, ...]:
    """Return all errata in order of their numbers, which start at 1."""
    entries = (_entry(letter, row) for letter in sources() for row in _rows(letter))
    return tuple(sorted(entries, key=lambda e: e.number))


def _rows(letter: str) -> list[dict[str, Any]]:
    """Return the raw TOML entries of a source; [] if the source has no file of errata."""
    file = files(__package__).joinpath(f"{sources()[letter].folder}.toml")
    return list(tomllib.loads(file.read_text("utf-8"))["erratum"]) if file.is_file() else []


def erratum(number: int) -> Erratum:
    """Return the erratum with the given number.

    Raises:
        KeyError: If no erratum has this number; the message states the valid range.
    """
    if not 1 <= number <= len(errata()):
        raise KeyError(f"no erratum {number}; they are numbered 1 to {len(errata())}")
    return errata()[number - 1]


def search(
    kind: str = "", loss: str = "", text: str = "", numbers: frozenset[int] | None = None, source: str = ""
) -> list[Erratum]:
    """Return the errata that match all given criteria; an empty criterion matches everything.

    Args:
        kind: Kind of the erratum.
        loss: Name of a loss of the catalogue.
        text: Words that must all occur, ignoring case.
        numbers: Numbers of the errata to search; None for all.
        source: Key of the source.
    """
    words = text.casefold().split()
    return [
        e
        for e in errata()
        if source in ("", e.source)
        and (not kind or e.kind == kind)
        and (not loss or loss in e.losses)
        and (numbers is None or e.number in numbers)
        and all(word in _text(e) for word in words)
    ]


def _text(e: Erratum) -> str:
    parts = (str(e.number), e.title, sources()[e.source].title, e.where, e.printed, e.true, e.example, *e.losses)
    text = " ".join(parts).casefold()
    return text + text.translate(_SPELT)


# spelt-out Greek letters, so that searches need no Greek keyboard
_SPELT = str.maketrans({"ρ": "rho", "μ": "mu", "α": "alpha", "π": "pi"})


def _entry(source: str, row: dict[str, Any]) -> Erratum:
    shown = (PrintedGradient(s["point"], tuple(s["printed"]), tuple(s["true"])) for s in row.pop("shown", ()))
    lists: dict[str, Any] = {k: tuple(row.pop(k)) for k in ("checked", "losses") if k in row}
    live = Live(**row.pop("live")) if "live" in row else None
    return Erratum(source, **row, **lists, shown=tuple(shown), live=live)
