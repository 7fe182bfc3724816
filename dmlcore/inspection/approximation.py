"""How far neighbours may be off that an index found, as it is kept with them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from dmlcore.metrics.approximate import TITLES, IndexKind, Recall


@dataclass(frozen=True)
class Approximation:
    """How far lists of an index may be off, from queries that were asked exactly too.

    first, listed: recall of the nearest alone and of all that are kept. precision, precision_off: AP@R by exact search
    minus that by the index, mean and half its 95 % interval.
    """

    kind: IndexKind
    breadth: int
    first: Recall
    listed: Recall
    precision: float
    precision_off: float

    @property
    def words(self) -> str:
        """For example "navigable graph (HNSW): finds 99.2 % of ..."."""
        title = TITLES[self.kind]
        return (
            f"{title[0].lower()}{title[1:]}, found {100 * self.first.share:.1f} % of the nearest and "
            f"{100 * self.listed.share:.1f} % of the {self.listed.k} nearest of {self.first.queries:,} queries that "
            f"were "
            "searched exactly too"
        )

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Approximation:
        """As it was kept; raises ValueError, KeyError or TypeError."""
        data = json.loads(text)
        if data["kind"] not in TITLES:
            raise ValueError(f"kind must be one of {', '.join(TITLES)}, got {data['kind']!r}")
        first, listed = (Recall(**data[name]) for name in ("first", "listed"))
        precision, off = (float(data[name]) for name in ("precision", "precision_off"))
        return cls(data["kind"], int(data["breadth"]), first, listed, precision, off)
