"""HTTP routes for the files of a map: /api/map/RUN/NAME/TAG/FILE.

TAG changes with the content, so browsers may cache every file. All files except map.csv use the format of `wire.pack`:

- points.bin: position (2 x uint16), class and sample of each point, names and colours of the classes; about 5 bytes per
  point once compressed
- frame-K.bin: positions at another step; contours-K.bin: density contours of its points
- right.bin, rank.bin, ... (`colourings.columns`): one byte per point
- meta-NUMBER.bin: metadata column NUMBER of the data set (`metadata.column`), one byte per point
- near-ROW.bin: the neighbours and metadata of a point; history-ROW.bin: its neighbours at the kept checkpoints
- selection-ID.bin, tags-ID.bin: one bit per point
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import anyio.to_thread
import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dmlcore.data import DataError, Dataset
from dmlcore.figures.density import density_lines
from dmlcore.figures.maps import MOST_COLOURS, Sheet, palette
from dmlcore.inspection import metadata, selections, tags_and_views
from dmlcore.inspection.maps import maps, trajectory
from dmlcore.inspection.neighbours import fingerprint
from dmlcore.storage import arrays
from dmlcore.storage.arrays import EMBEDDINGS, Unreadable
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.typing import Singles
from pages.inspection.explore import export, one_sample
from pages.inspection.explore import metadata as metadata_attributes
from pages.inspection.explore.colourings import Column, columns, tagged
from pages.shared.server import host, thumbnails, wire
from pages.shared.widgets.test_neighbours import learned
from pages.shared.words import sentences as words

TRAINING = "training"  # suffix of NAME in the URL for the map over training
COLUMNS = ("right", "rank", "hubness", "doubted", "split", "purity", "density")
GROWS = "no-cache"  # HTTP cache policy of history files, which grow when embeddings of another checkpoint are added
_FILE = re.compile(r"([a-z]+)(?:-([0-9a-f]{1,16}))?\.(bin|csv)")


@dataclass(frozen=True, eq=False)
class MapData:
    """Map of a run, loaded for serving; `steps` holds the training step of each frame and is empty for a single map."""

    run: Run
    source: Path
    name: str  # in the address
    tag: str
    sheet: Sheet
    points: Singles  # positions (n, 2) in map units, at the last frame
    steps: tuple[int, ...]
    title: str
    words: str  # description of the settings with which the map was computed
    quality: maps.Quality | None

    @property
    def address(self) -> str:
        """Base URL of the map's files, with a trailing slash."""
        return f"{host.base()}api/map/{self.run.id}/{self.name}/{self.tag}/"

    @property
    def has_labels(self) -> bool:
        """False if all samples have the same class, as in an embedding set without labels."""
        return len(self.sheet.labels) > 1

    @property
    def has_gallery(self) -> bool:
        """True if some samples are searched without being queries."""
        return bool(learned(self.source).is_gallery.any())

    def dataset(self) -> Dataset | None:
        """Return the data set of the run, or None if it cannot be read."""
        try:
            return thumbnails.dataset(self.run.spec)
        except DataError:
            return None

    def metadata(self) -> list[metadata.MetadataColumn]:
        """Return the metadata columns by which the map can be coloured and filtered."""
        return metadata.columns(self.dataset())[: metadata_attributes.MOST_COLUMNS]


def of_map(run: Run, settings: maps.Settings, *, training: bool = False) -> MapData | None:
    """Return the map of the newest embeddings with these settings, or that over training; None if it does not exist.

    Raises Unreadable, ValueError.
    """
    source, path = run.embeddings(), (trajectory if training else maps).find(run, settings)
    if not (source and path):
        return None
    tag = hashlib.sha256(f"{fingerprint(source)}{fingerprint(path)}".encode()).hexdigest()[:16]
    return (_over_training if training else _of_map)(run.path, source, path, tag)


def names(run: Run, sheet: Sheet) -> list[str]:
    """Return the name of each class of a map; "class LABEL" if the data set cannot be read."""
    try:
        known = thumbnails.dataset(run.spec).class_names
    except DataError:
        known = ()
    return [known[label] if label < len(known) else f"class {label}" for label in sheet.labels.tolist()]


# ---- responses


async def respond(request: Request) -> Response:
    """Respond with one file of a map; 404 if it does not exist, 409 with the reason if it cannot be computed."""
    return await anyio.to_thread.run_sync(_respond, request.path_params)


def _respond(given: dict[str, str]) -> Response:
    asked = _FILE.fullmatch(given["file"])
    try:
        map_ = _named(RunStore().open(given["run"]), given["name"])
        if not asked or map_ is None or map_.tag != given["tag"]:
            return Response(status_code=404)
        content = _content(map_, *asked.groups())
    except (RunError, FileNotFoundError):
        return Response(status_code=404)
    except (Unreadable, ValueError) as error:
        return Response(words.plain(error), status_code=409, media_type="text/plain")
    if content is None:
        return Response(status_code=404)
    is_csv = given["file"].endswith(".csv")
    headers = {
        "Cache-Control": GROWS if given["file"].startswith("history-") else "public, max-age=31536000, immutable",
        "X-Content-Type-Options": "nosniff",
        "Content-Encoding": "gzip",
    } | ({"Content-Disposition": f'attachment; filename="map-{map_.run.id}.csv"'} if is_csv else {})
    media = "text/csv; charset=utf-8" if is_csv else "application/octet-stream"
    return Response(content, media_type=media, headers=headers)


ROUTES: list[BaseRoute] = [Route("/api/map/{run}/{name}/{tag}/{file}", respond)]


def _named(run: Run, name: str) -> MapData | None:
    """Return the map with the given name from a URL, "SETTINGS" or "SETTINGS-training" (over training), or None."""
    wanted, _, kind = name.partition("-")
    settings = next((s for s in maps.list_settings(run) if s.name == wanted), None)
    if settings is None or kind not in ("", TRAINING):
        return None
    return of_map(run, settings, training=bool(kind))


def _content(layout: MapData, kind: str, which: str | None, suffix: str) -> bytes | None:
    """Return the gzip-compressed content of the file KIND-WHICH.SUFFIX of a map, or None if there is no such file."""
    if suffix == "csv":
        if kind != "map" or which is not None:
            return None
        sheet = layout.sheet
        return gzip.compress(
            export.table(
                sheet, layout.points, names(layout.run, sheet), learned(layout.source), layout.dataset()
            ).encode()
        )
    if which is None:
        return _points(layout) if kind == "points" else _packed(_columns(layout)[kind]) if kind in COLUMNS else None
    if kind in ("selection", "tags"):
        return _selection(layout, which) if kind == "selection" else _tags(layout, which)
    if kind not in NUMBERED or not which.isdigit() or int(which) >= _count(layout, kind):
        return None
    return NUMBERED[kind](layout, int(which))


def _count(layout: MapData, kind: str) -> int:
    """Return the number of files of a kind that are numbered from 0."""
    if kind == "meta":
        return len(layout.metadata())
    return len(layout.sheet.frames if kind in ("frame", "contours") else layout.points)


@lru_cache(maxsize=4)
def _points(layout: MapData) -> bytes:
    """Return the gzip-compressed content of points.bin, the first file that the page loads."""
    sheet = layout.sheet
    columns = {
        "xy": sheet.frames[-1],
        "group": sheet.group.astype("<u2"),
        # indices and labels mostly increase, so their differences compress to almost nothing
        "index_steps": np.diff(sheet.indices, prepend=0).astype("<i4"),
        "label_steps": np.diff(sheet.labels, prepend=0).astype("<i4"),
        "central": sheet.central.astype("<u4"),
        "counts": sheet.counts.astype("<u4"),
    }
    header = {"names": names(layout.run, sheet), "colours": palette(min(len(sheet.labels), MOST_COLOURS))}
    return gzip.compress(wire.pack(header, columns), 6)


def _frame(layout: MapData, number: int) -> bytes:
    return gzip.compress(wire.pack({}, {"xy": layout.sheet.frames[number]}), 1)


def _contours(layout: MapData, number: int) -> bytes:
    lines = [(share, line) for share, lines in density_lines(layout.sheet.frames[number]) for line in lines]
    places = [line for _, line in lines] or [np.empty((0, 2), "<u2")]
    ends = np.cumsum([len(line) for _, line in lines], dtype=np.int32)
    header = {"shares": [share for share, _ in lines]}
    return gzip.compress(wire.pack(header, {"xy": np.concatenate(places), "ends": ends}), 1)


def _near(layout: MapData, row: int) -> bytes:
    index = int(layout.sheet.indices[row])
    facts = one_sample.near(layout.source, row) | one_sample.described(layout.dataset(), index)
    return gzip.compress(wire.pack(facts, {}), 1)


def _history(layout: MapData, row: int) -> bytes:
    return gzip.compress(wire.pack(one_sample.history(layout.run, int(layout.sheet.indices[row])), {}), 1)


def _tags(layout: MapData, which: str) -> bytes | None:
    kept = tags_and_views.read(layout.run)
    if kept.id != which:
        return None
    bits = tagged(list(kept.tags.values()), layout.sheet.indices)
    return gzip.compress(wire.pack({"names": list(kept.tags)}, {"bits": bits}), 6)


def _selection(layout: MapData, which: str) -> bytes | None:
    selection = selections.load(layout.run, which)
    if selection is None:
        return None
    bits = np.packbits(np.isin(layout.sheet.indices, selection.indices), bitorder="little")
    return gzip.compress(wire.pack({}, {"bits": bits}), 6)


@lru_cache(maxsize=4 * metadata_attributes.MOST_COLUMNS)
def _metadata(layout: MapData, number: int) -> bytes:
    return _packed(metadata_attributes.column(layout.metadata()[number].values[layout.sheet.indices]))


def _packed(column: Column) -> bytes:
    fine = {} if column.fine is None else {"fine": column.fine}
    return gzip.compress(wire.pack(column.facts, {"values": column.values, **fine}), 6)


NUMBERED: dict[str, Callable[[MapData, int], bytes]] = {
    "frame": _frame, "contours": _contours, "near": _near, "history": _history, "meta": _metadata,
}  # fmt: skip


@lru_cache(maxsize=4)
def _columns(layout: MapData) -> dict[str, Column]:
    return columns(learned(layout.source))


# ---- reading


def _sheet(source: Path, points: Singles) -> Sheet:
    """Combine the points (..., n, 2) of a map with the labels and data set indices of the embeddings in `source`."""
    count = {"n": points.shape[-2]}
    table = arrays.read(source, EMBEDDINGS, "labels", "indices", remedy="Evaluate the run again", **count)
    return Sheet.of(points, table["labels"], table["indices"])


@lru_cache(maxsize=4)
def _of_map(folder: Path, source: Path, path: Path, tag: str) -> MapData:
    layout = maps.read(path)
    sheet = _sheet(source, layout.points)
    return MapData(
        Run(folder),
        source,
        layout.settings.name,
        tag,
        sheet,
        layout.points,
        (),
        layout.words,
        layout.words,
        layout.quality,
    )


@lru_cache(maxsize=4)
def _over_training(folder: Path, source: Path, path: Path, tag: str) -> MapData:
    movement = trajectory.read(path)
    sheet = _sheet(source, movement.points)
    steps = tuple(int(step) for step in movement.steps)
    return MapData(
        Run(folder),
        source,
        f"{movement.settings.name}-{TRAINING}",
        tag,
        sheet,
        movement.points[-1],
        steps,
        f"{movement.settings.words}, over training",
        movement.how,
        movement.quality[-1],
    )
