"""Accuracy of the neighbour lists that an approximate index returned, stored together with the lists."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from dmlcore.metrics.approximate import TITLES, IndexKind, Recall


@dataclass(frozen=True)
class Approximation:
    """Accuracy of approximate neighbour lists, measured on queries that were also searched exactly.

    Args:
        kind: Kind of approximate index.
        breadth: Search breadth of the index, for example the number of candidates or cells that it visits.
        first: Share of the exact nearest neighbours that the index found.
        listed: Share of all entries of the exact neighbour lists that the index found.
        precision: Mean AP@R with the exact lists minus mean AP@R with the approximate lists.
        precision_off: Half the width of the 95 % confidence interval of `precision`.
    """

    kind: IndexKind
    breadth: int
    first: Recall
    listed: Recall
    precision: float
    precision_off: float

    @property
    def words(self) -> str:
        """Description for display, for example "navigable graph (HNSW), found 99.2 % of the nearest ..."."""
        title = TITLES[self.kind]
        return (
            f"{title[0].lower()}{title[1:]}, found {100 * self.first.share:.1f} % of the nearest and "
            f"{100 * self.listed.share:.1f} % of the {self.listed.k} nearest of {self.first.queries:,} queries "
            "that were also searched exactly"
        )

    def to_json(self) -> str:
        """Return the JSON text that `from_json` reads."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Approximation:
        """Create an Approximation from the JSON text that `to_json` returns.

        Raises:
            ValueError: The text is not JSON or names an unknown kind of index.
            KeyError: A field is missing.
            TypeError: A field has the wrong type.
        """
        data = json.loads(text)
        if data["kind"] not in TITLES:
            raise ValueError(f"kind must be one of {', '.join(TITLES)}, got {data['kind']!r}")
        first, listed = (Recall(**data[name]) for name in ("first", "listed"))
        precision, off = (float(data[name]) for name in ("precision", "precision_off"))
        return cls(data["kind"], int(data["breadth"]), first, listed, precision, off)
