"""Quality of a map of embeddings: trustworthiness and the share of neighbours that it preserves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dmlcore.projection.linear import standardised
from dmlcore.typing import Floats, Ints

K = 15  # number of neighbours
# limit on compared pairs: all pairs of 11,585 points, or of 2,237 out of 60,000 points with all others
MOST_PAIRS = 2**27
# squared distances below this multiple of the mean squared norm count as 0, so that duplicates coincide
ROUNDING = 1e-12
NEAR_CHANCE = 0.6
CHUNK = 2**23  # largest number of values in a temporary array


@dataclass(frozen=True)
class Quality:
    """Quality of a map; both measures are in 0..1, and 1 is best.

    Args:
        trustworthiness: 1 minus a penalty for neighbours on the map that are not neighbours in the embedding; the
            penalty grows with their rank in the embedding.
        kept_neighbours: Mean share of a point's neighbours in the embedding that are also its neighbours on the map.
        k: Number of neighbours.
        sampled: Number of points whose neighbours were compared.
        points: Number of points of the map.
        among: For maps of very many points, the number of placed points among which neighbours were searched.
    """

    trustworthiness: float
    kept_neighbours: float
    k: int
    sampled: int
    points: int
    among: int | None = None

    @property
    def doubt(self) -> str:
        """Warning for a map whose neighbours are hardly better than random ones; "" for other maps."""
        if self.trustworthiness >= NEAR_CHANCE:
            return ""
        return "Random points have a trustworthiness of 0.5, so neighbours on this map are meaningless."

    @property
    def words(self) -> str:
        """Description such as "trustworthiness 0.962, 58.1 % of the 15 nearest neighbours kept (measured on ...)"."""
        sample = "" if self.sampled == self.points else f" (measured on {self.sampled:,} of {self.points:,} points)"
        if self.among is not None:
            sample = f" (measured on {self.sampled:,} of {self.points:,} points, among {self.among:,} that were placed)"
        kept = f"{100 * self.kept_neighbours:.1f} % of the {self.k} nearest neighbours kept"
        words = f"trustworthiness {self.trustworthiness:.3f}, {kept}{sample}"
        return f"{words}. {self.doubt}" if self.doubt else words

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-serialisable dictionary."""
        return asdict(self)


def quality(embeddings: Any, plane: Any, *, k: int = K, most_pairs: int = MOST_PAIRS) -> Quality | None:
    """Measure the quality of a map.

    Points at equal distance have the same rank, so duplicate embeddings do not lower the quality.

    Args:
        embeddings: Array (N, D).
        plane: Map (N, 2) of the embeddings.
        k: Number of neighbours, lowered to (N - 1) // 2, above which trustworthiness is undefined.
        most_pairs: If N * N exceeds this number, only evenly spaced points are compared with all others, to limit the
            cost.

    Returns:
        The quality, or None for fewer than 3 points.

    Raises:
        ValueError: An argument has the wrong shape; the message names it.

    Reference:
        Venna and Kaski (2001), "Neighborhood preservation in nonlinear projection methods", eq. 1.
    """
    points, flat = standardised(embeddings)[0], standardised(plane)[0]
    count = len(points)
    if len(flat) != count:
        raise ValueError(f"plane must have one row per embedding ({count}), got {len(flat)}")
    k = min(k, (count - 1) // 2)
    if k < 1:
        return None
    rows = _sample(count, most_pairs)
    penalty, kept = 0, 0
    for part in np.array_split(rows, max(1, len(rows) * count // CHUNK)):
        far, near = _squares(points, part), _squares(flat, part)
        on_map = np.argpartition(near, k - 1, axis=1)[:, :k]
        farness = np.take_along_axis(far, on_map, axis=1)  # (rows, k) squared distances in the embedding
        # The rank in the embedding is 1 plus the number of points that are strictly nearer.
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
    """Return the squared distances (rows, N) from the points `rows` to all points; infinity from a point to itself."""
    lengths = np.einsum("ij,ij->i", points, points)
    squares: Floats = lengths[rows, None] + lengths - 2 * points[rows] @ points.T
    # points are standardised, so their mean squared norm is the number of dimensions
    squares[squares < ROUNDING * points.shape[1]] = 0
    squares[np.arange(len(rows)), rows] = np.inf
    return squares


def _counts(ordered: Floats, values: Floats) -> Ints:
    """Count the entries in each row of `ordered` (rows, N) that are below each of `values` (rows, k)."""
    return np.stack([np.searchsorted(row, wanted) for row, wanted in zip(ordered, values, strict=True)])
