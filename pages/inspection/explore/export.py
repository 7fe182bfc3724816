"""Export of a map as CSV, one line per sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dmlcore.figures.maps import Sheet
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.csv_text import as_csv
from dmlcore.typing import Singles
from pages.inspection.explore.colourings import NOWHERE, columns


def table(sheet: Sheet, points: Singles, names: Sequence[str], known: TestNeighbours) -> str:
    """Return the map as CSV.

    The columns are sample, class, position, correctness and distance of the nearest neighbour, and purity.

    Args:
        points: Positions (n, 2) in map units.
        names: Class names, in the order of `sheet.labels`.
    """
    sides = columns(known)
    lines: list[list[Any]] = [
        ["sample", "class", "name", "x", "y", "nearest_is_right", "purity", "distance_to_nearest"]
    ]
    right, purity = sides["right"].values, sides["purity"].values
    for row, (index, group, (x, y), near) in enumerate(
        zip(sheet.indices.tolist(), sheet.group.tolist(), points.tolist(), known.distances[:, 0], strict=True)
    ):
        lines.append(
            [
                index,
                int(sheet.labels[group]),
                names[group],
                f"{x:.6g}",
                f"{y:.6g}",
                "" if right[row] == NOWHERE else int(right[row]),
                "" if purity[row] == NOWHERE else f"{purity[row] / 254:.3f}",
                f"{near:.6g}",
            ]
        )
    return as_csv(lines)
