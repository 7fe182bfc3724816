"""Export of a map as CSV, one line per sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dmlcore.data import Dataset
from dmlcore.figures.maps import Sheet
from dmlcore.inspection import metadata
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.csv_text import as_csv
from dmlcore.typing import Singles
from pages.inspection.explore.colourings import NOWHERE, columns


def table(
    sheet: Sheet, points: Singles, names: Sequence[str], known: TestNeighbours, data: Dataset | None = None
) -> str:
    """Return the map as CSV.

    The columns are sample, class, position, correctness and distance of the nearest neighbour, and purity; for an
    embedding set also the id and the metadata. Without labels, the columns that need labels are left out.

    Args:
        points: Positions (n, 2) in map units.
        names: Class names, in the order of `sheet.labels`.
        data: Data set of the samples; None if it cannot be read.
    """
    sides = columns(known)
    indices = sheet.indices.tolist()
    right, purity = sides["right"].values.tolist(), sides["purity"].values.tolist()
    cells: dict[str, Sequence[Any]] = {"sample": indices}
    if data is not None and metadata.id_of(data, indices[0]):
        cells["id"] = [metadata.id_of(data, index) for index in indices]
    if known.has_labels:
        cells["class"] = sheet.labels[sheet.group].tolist()
        cells["name"] = [names[group] for group in sheet.group.tolist()]
    cells |= {axis: [f"{value:.6g}" for value in points[:, number].tolist()] for number, axis in enumerate("xy")}
    if known.has_labels:
        cells["nearest_is_right"] = ["" if value == NOWHERE else int(value) for value in right]
        cells["purity"] = ["" if value == NOWHERE else f"{value / 254:.3f}" for value in purity]
    cells["distance_to_nearest"] = [f"{near:.6g}" for near in known.distances[:, 0].tolist()]
    metadata.add_columns(cells, data, indices)
    return as_csv([list(cells), *zip(*cells.values(), strict=True)])
