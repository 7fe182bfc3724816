"""How far a map may be believed: trustworthiness and the share of neighbours that it keeps."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dmlcore.projection.linear import standardised
from dmlcore.typing import Floats, Ints

K = 15  # neighbours that are looked at
MOST_PAIRS = 2**27  # of points whose distances are compared: all of 11,585 points, 2,237 of 60,000
ROUNDING = 1e-12  # of a squared distance in units of the spread: copies are at distance 0
NEAR_CHANCE = 0.6
CHUNK = 2**23  # numbers held at once by one temporary array


@dataclass(frozen=True)
class Quality:
    """Both 0..1, 1 is best, over the `k` nearest neighbours of `sampled` of all `points`.

    trustworthiness: points that are neighbours on the map without being so in the embedding cost it, by their rank
    there. kept_neighbours: mean share of a point's neighbours in the embedding that are its neighbours on the map.
    among: of a map of very many, how many of the points placed on it were drawn; neighbours are those among them.
    """

    trustworthiness: float
    kept_neighbours: float
    k: int
    sampled: int
    points: int
    among: int | None = None

    @property
    def doubt(self) -> str:
        """What to say where neighbours on the map are hardly better than others, else nothing."""
        if self.trustworthiness >= NEAR_CHANCE:
            return ""
        return "Points strewn at random have a trustworthiness of 0.5: who lies beside whom on this map says nothing."

    @property
    def words(self) -> str:
        """For example "trustworthiness 0.962, 58.1 % of the 15 nearest neighbours kept (measured on 2,237 points)"."""
        sample = "" if self.sampled == self.points else f" (measured on {self.sampled:,} of {self.points:,} points)"
        if self.among is not None:
            sample = f" (measured on {self.sampled:,} of {self.points:,} points, among {self.among:,} that were placed)"
        kept = f"{100 * self.kept_neighbours:.1f} % of the {self.k} nearest neighbours kept"
        words = f"trustworthiness {self.trustworthiness:.3f}, {kept}{sample}"
        return f"{words}. {self.doubt}" if self.doubt else words

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def quality(embeddings: Any, plane: Any, *, k: int = K, most_pairs: int = MOST_PAIRS) -> Quality | None:
    """Quality of a map (N, 2) of embeddings (N, D); None for fewer than 4 points, which have no far neighbour.

    k is lowered to (N - 1) // 2, above which trustworthiness is not defined. Beyond `most_pairs` distances it is
    measured on evenly spaced points, each against all others, so memory stays bounded. Points at equal distance count
    as equally near: copies cost nothing. Raises ValueError naming the argument.

    Source: Venna and Kaski (2001), "Neighborhood preservation in nonlinear projection methods", eq. 1.
    """
    points, flat = standardised(embeddings)[0], standardised(plane)[0]
    count = len(points)
    if len(flat) != count:
        raise ValueError(f"plane must have a row for each of the {count} embeddings, got {len(flat)}")
    k = min(k, (count - 1) // 2)
    if k < 1:
        return None
    rows = _sample(count, most_pairs)
    penalty, kept = 0, 0
    for part in np.array_split(rows, max(1, len(rows) * count // CHUNK)):
        far, near = _squares(points, part), _squares(flat, part)
        on_map = np.argpartition(near, k - 1, axis=1)[:, :k]
        farness = np.take_along_axis(far, on_map, axis=1)  # (rows, k), in the embedding
        # The rank in the embedding, from 1: how many are strictly nearer, and one.
        far.sort(axis=1)
        ranks = _counts(far, farness) + 1
        penalty += int(np.maximum(0, ranks - k).sum())
        kept += int((farness <= far[:, k - 1 : k]).sum())
    worst = len(rows) * k * (2 * count - 3 * k - 1) / 2
    return Quality(1 - penalty / worst, kept / (len(rows) * k), k, len(rows), count)


def _sample(count: int, most_pairs: int) -> Ints:
    wanted = min(count, max(1, most_pairs // count))
    return np.unique(np.linspace(0, count - 1, wanted).round().astype(np.int64))


def _squares(points: Floats, rows: Ints) -> Floats:
    """Squared distances (rows, N) of some points to all; to themselves infinity."""
    lengths = np.einsum("ij,ij->i", points, points)
    squares: Floats = lengths[rows, None] + lengths - 2 * points[rows] @ points.T
    squares[squares < ROUNDING * points.shape[1]] = 0  # the mean square length is the number of dimensions
    squares[np.arange(len(rows)), rows] = np.inf
    return squares


def _counts(ordered: Floats, values: Floats) -> Ints:
    """How many of each row of `ordered` (rows, N) are below each of `values` (rows, k)."""
    return np.stack([np.searchsorted(row, wanted) for row, wanted in zip(ordered, values, strict=True)])
