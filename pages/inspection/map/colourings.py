"""What the points of a map may be coloured by, one byte each: what their neighbours in the embedding say."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.typing import Bytes

NEAREST = 8  # neighbours that purity and density look at
NOWHERE = 255  # a byte that says: not defined for this point


def neighbourhood(neighbours: TestNeighbours) -> dict[str, tuple[Bytes, dict[str, Any]]]:
    """What points may be coloured by, one byte each, and what the legend says of it."""
    searched = neighbours.is_gallery if neighbours.is_gallery.any() else np.ones(len(neighbours.labels), bool)
    classes, group = np.unique(neighbours.labels, return_inverse=True)
    others = np.bincount(group[searched], minlength=len(classes))[group] - searched  # of the class, itself not counted
    looked = np.minimum(others, min(NEAREST, neighbours.right.shape[1]))
    alone = looked == 0
    hits = np.cumsum(neighbours.right, axis=1)[np.arange(len(looked)), np.maximum(looked, 1) - 1]
    share = np.divide(hits, looked, out=np.zeros(len(looked)), where=~alone)
    no_query = np.isnan(neighbours.average_precision)
    reach = neighbours.distances[:, min(NEAREST, neighbours.distances.shape[1]) - 1]
    low, high = np.quantile(reach, [0.01, 0.99])
    dense = np.clip((high - reach) / ((high - low) or 1.0), 0, 1)
    right = np.where(no_query, NOWHERE, neighbours.right[:, 0])
    k = min(NEAREST, neighbours.right.shape[1])
    return {
        "right": (
            right.astype(np.uint8),
            {
                "right": int((right == 1).sum()),
                "wrong": int((right == 0).sum()),
                "neither": int(no_query.sum()),
            },
        ),
        "purity": (
            np.where(alone, NOWHERE, np.rint(254 * share)).astype(np.uint8),
            {
                "title": f"of its nearest {k}, or fewer in a smaller class, of the same class",
                "low": "0 %",
                "high": "100 %",
                "neither": int(alone.sum()),
            },
        ),
        "density": (
            np.rint(254 * dense).astype(np.uint8),
            {"title": f"distance to the neighbour {k}", "low": f"{high:.3g} sparse", "high": f"{low:.3g} dense"},
        ),
    }
