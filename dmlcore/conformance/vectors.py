"""Batches of embeddings, labels and proxies on which all libraries are compared.

They are computed by a formula, so that no data need to be stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Vector:
    """Batch in float64 with embeddings (B, D), labels (B,) and proxies (classes, D), none of them normalised."""

    name: str
    embeddings: Tensor
    labels: Tensor
    proxies: Tensor

    @property
    def classes(self) -> int:
        """Number of classes, which is the number of proxies. A class may be absent from the batch."""
        return len(self.proxies)

    @property
    def names(self) -> list[int]:
        """Labels as a list of integers."""
        return [int(label) for label in self.labels]


def by_rule(name: str, labels: list[int], classes: int, phase: float = 0.0, dimensions: int = 5) -> Vector:
    """Create a batch with the given labels by the formula of the golden vectors (tests/golden/losses.json)."""
    y = torch.tensor(labels)
    i, c = torch.arange(len(labels), dtype=torch.float64)[:, None], torch.arange(classes, dtype=torch.float64)[:, None]
    d, own = torch.arange(dimensions, dtype=torch.float64), y.double()[:, None]
    embeddings = 0.8 * (1.7 * own + 0.9 * d * (own + 1) + phase).cos()
    embeddings = embeddings + 0.9 * (0.7 * i + 1.3 * d + 0.77 * i * d + 1 + phase).sin()
    proxies = 1.3 * (1.7 * c + 0.9 * d * (c + 1) + 0.3 + phase).cos() + 0.4 * (0.5 + 1.1 * c - 0.9 * d + phase).sin()
    return Vector(name, embeddings, y, proxies)


BALANCED = by_rule("balanced", [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], 4)
UNEVEN = by_rule("uneven", [0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3, 4], 6, 0.7)
"""Class 4 has one sample, class 5 none."""
TWO_EACH = by_rule("two of each class", [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], 6, 0.2)
FOUR_EACH = by_rule("four of four classes", [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4, 4, 0.4)


HIGH_LABELS = Vector("labels from 2^24 on", BALANCED.embeddings, BALANCED.labels + 2**24, BALANCED.proxies)
"""float32 has no odd numbers there."""
FAR_AWAY = Vector("10^6 away from the origin", BALANCED.embeddings + 1e6, BALANCED.labels, BALANCED.proxies)


def single(vector: Vector) -> Vector:
    """Return the batch in float32, the dtype in which most networks are trained."""
    return Vector(f"{vector.name}, float32", vector.embeddings.float(), vector.labels, vector.proxies)
