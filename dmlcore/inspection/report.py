"""Report of a run: queries with their neighbours, and a map, in one HTML file that makes no network requests."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from dmlcore import data, losses
from dmlcore.figures.maps import in_square, palette
from dmlcore.figures.palette import custom_properties
from dmlcore.inspection import confusions, images
from dmlcore.inspection.embedding_table import EmbeddingTable
from dmlcore.inspection.maps import maps
from dmlcore.inspection.maps.maps import Map
from dmlcore.significance.gain import gain
from dmlcore.significance.transductive import mark_transductive
from dmlcore.storage.metrics_rows import REPRESENTATIONS, representation
from dmlcore.storage.runs import Run, scores
from dmlcore.typing import Array, Ints

_HERE = Path(__file__).resolve()  # style sheet and script are in this folder
WORST, BEST, NEIGHBOURS = 24, 8, 8  # numbers of worst and best queries, and of neighbours per query
TILE = 88  # largest side in pixels of an image in the gallery
THUMBNAIL = 48  # side in pixels of a thumbnail on the map
MOST_THUMBNAILS = 6144  # about 1 kB each
SHEET = 16  # number of thumbnails per side of a sheet
MOST_CLASSES = 300  # largest number of rows in the table of classes


def newest_map(run: Run) -> Map | None:
    """Return the newest map of the newest embeddings, or None if there is none.

    Raises:
        Unreadable: The file of the map is damaged.
    """
    path = run.projection()
    return None if path is None else maps.read(path)


def html(table: EmbeddingTable, plane: Map | None = None, remarks: Sequence[str] = ()) -> str:
    """Return the report of a run, or of the selection in `table`, as an HTML document.

    All images, the style sheet and the script are embedded; the Content-Security-Policy forbids everything else. Names
    are escaped. MOST_THUMBNAILS, WORST and BEST limit the number of images, so a report has a few MB; the footer states
    its size.

    Args:
        table: Embeddings to report.
        plane: Map to include; if None, the report has no map.
        remarks: Lines shown below the scores, for example deviations from the protocol of the run.
    """
    style, script = (_HERE.with_suffix(end).read_text() for end in (".css", ".js"))
    style = custom_properties() + style
    policy = f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    policy += "; base-uri 'none'; form-action 'none'"
    title = _label(table)
    body = [_head(table, title), _scores(table, remarks)]
    body += [_map(table, plane)] if plane else []
    body += [_gallery(table), _classes(table), _spec(table)]
    text = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body><main>"
        + "".join(body)
        + "<footer>%SIZE% All images are in this file; it opens without a network. Made by DML Lab.</footer></main>\n"
        f"<script>{script}</script></body></html>\n"
    )
    return text.replace("%SIZE%", f"{len(text.encode()) / 1e6:.1f} MB.")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _name(text: str) -> str:
    """Return a name as HTML text: escaped, and isolated from the writing direction of its surroundings."""
    return f"<bdi>{escape(text)}</bdi>"


def _percent(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


# ---- header and scores


def _label(table: EmbeddingTable) -> str:
    spec = table.run.spec
    return spec.name or f"{_data_title(spec.data.name)}, {_loss_title(spec.loss.name)}"


def _data_title(name: str) -> str:
    return data.describe(name).title if name in data.names() else name


def _loss_title(name: str) -> str:
    return losses.describe(name).title if name in losses.LOSSES else name


def _head(table: EmbeddingTable, title: str) -> str:
    spec, everything = table.run.spec, len(table.learned.labels)
    selection = "" if len(table.rows) == everything else f", a selection of {everything:,}"
    facts = {
        "Run": table.run.id,
        "Data": _data_title(spec.data.name),
        "Loss": _loss_title(spec.loss.name),
        "Network": f"{spec.model.name}, {table.learned.embeddings.shape[1]} dimensions",
        "Protocol": spec.protocol or "none",
        "Shown": f"{len(table.rows):,} test samples of {len(np.unique(table.labels)):,} classes{selection}",
        "Weights": table.weights[:12],
    }
    rows = "".join(f"<div><dt>{escape(key)}</dt><dd>{_name(value)}</dd></div>" for key, value in facts.items())
    return f"<header><h1>{_name(title)}</h1><dl>{rows}</dl></header>"


def _scores(table: EmbeddingTable, remarks: Sequence[str]) -> str:
    """Return the HTML section with the scores.

    If scores were recorded for the weights of `table`, they are shown together with those of the raw inputs and of the
    untrained network. Otherwise, only MAP@R and R@1 of the embeddings are shown.
    """
    recorded = scores(table.run.metrics()[0])
    if recorded.get("trained", {}).get("weights") != table.weights:
        recorded = {}
    learned, started = table.learned, bool(table.run.spec.model.start)
    lines = [
        [mark_transductive(representation(each, pretrained=started), row.get("transductive")), *_score_cells(row)]
        for each in REPRESENTATIONS
        if (row := recorded.get(each))
    ]
    head = ["", "MAP@R", *(f"R@{k}" for k in recorded["trained"]["recall_at"])] if recorded else ["", "MAP@R", "R@1"]
    if not lines:
        lines = [["trained network", _percent(learned.map_at_r), _percent(learned.recall_at_1)]]
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    gained = gain(recorded, started=started)
    verdict = f"<p>{escape(gained.words)}</p>" if gained else ""
    failures, queries = int(learned.failures.sum()), int((~np.isnan(learned.average_precision)).sum())
    more = "".join(f"<p>{_name(remark)}</p>" for remark in remarks)
    return (
        f"<section><h2>Scores on the test split</h2><table class='scores'><tr>{titles}</tr>{body}</table>{verdict}"
        f"<p>The nearest neighbour of {failures:,} of {queries:,} queries has another class.</p>{more}</section>"
    )


def _score_cells(row: dict[str, Any]) -> list[str]:
    return [_percent(row.get("map_at_r")), *(_percent(value) for value in row["recall_at"].values())]


def _spec(table: EmbeddingTable) -> str:
    text = escape(table.run.spec.to_toml())
    return f"<details><summary>Complete spec</summary><pre><bdi>{text}</bdi></pre></details>"


# ---- the map


def _map(table: EmbeddingTable, plane: Map) -> str:
    learned, measured = table.learned, f": {plane.quality.words}" if plane.quality else ""
    words = f"{plane.words}{measured}. Scores are measured on the embeddings themselves, not on this plane."
    present, place = np.unique(learned.labels, return_inverse=True)
    # Little-endian numbers of fixed size, as the script of the report reads them.
    square = np.rint(in_square(plane.points) * 65535).astype("<u2")
    shown = np.isin(np.arange(len(learned.labels)), table.rows)
    # 0: nearest neighbour of another class, 1: of the same class, 2: class has no other sample
    right = np.where(np.isnan(learned.average_precision), 2, learned.right[:, 0])
    illustrated, sheets, pixelated = _sheets(table)
    content = {
        "points": _encode(square),
        "classes": _encode(place.astype("<u2")),
        "indices": _encode(learned.indices.astype("<i4")),
        "right": _encode(right.astype("u1")),
        "shown": _encode(shown.astype("u1")),
        "names": [table.class_name(int(label)) for label in present],
        "colours": palette(len(present)),
        "illustrated": _encode(illustrated.astype("<i4")),
        "sheets": sheets,
        "side": THUMBNAIL,
        "columns": SHEET,
        "pixelated": pixelated,
    }
    less = (
        ""
        if not 0 < len(illustrated) < len(table.rows)
        else (f" To limit the file size, {len(illustrated):,} of {len(table.rows):,} samples have an image.")
    )
    return (
        '<section class="map"><h2>Map</h2><div class="bar"><label>Colour <select id="colour"><option value="class">'
        'class</option><option value="right">nearest neighbour right or wrong</option></select></label>'
        '<span class="zoom"><button id="closer" aria-label="zoom in">+</button><button id="farther" '
        'aria-label="zoom out">−</button><button id="whole">whole map</button></span></div>'
        '<div class="both"><div class="frame"><canvas id="map" tabindex="0" role="img" aria-label="map of the '
        'embeddings; arrow keys go from point to point"></canvas><div id="card" hidden></div></div>'
        '<div id="legend" role="group" aria-label="classes"></div></div><p id="said" class="hidden" '
        'aria-live="polite"></p><noscript><p>The map is drawn by a script, which is switched off here.</p></noscript>'
        f"<p>{escape(words)}{less}</p>"
        f'<script type="application/json" id="content">{_json(content)}</script></section>'
    )


def _sheets(table: EmbeddingTable) -> tuple[Ints, list[str], bool]:
    """Return the rows that get a thumbnail, the sheets of thumbnails as data URIs, and True if they need sharp pixels.

    Thumbnails need sharp pixels, that is, no interpolation, if the images are smaller than a thumbnail. If there are
    more than MOST_THUMBNAILS rows, evenly spaced ones are used.
    """
    if table.data is None:
        return np.empty(0, np.int64), [], False
    every = math.ceil(len(table.rows) / MOST_THUMBNAILS)
    rows, each = table.rows[::every], SHEET * SHEET
    tiny = max(next(iter(images.small(table.data, table.indices[:1], THUMBNAIL))).shape[:2]) < THUMBNAIL
    sheets = []
    for start in range(0, len(rows), each):
        chunk = rows[start : start + each]
        drawn = images.small(table.data, table.learned.indices[chunk], THUMBNAIL)
        page = images.sheet(drawn, THUMBNAIL, SHEET, math.ceil(len(chunk) / SHEET))
        sheets.append(images.data_uri(page))
    return rows, sheets, tiny


def _encode(values: Array) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _json(content: dict[str, Any]) -> str:
    """Return JSON text with escaped <, > and &, so that it cannot close the script element around it."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# ---- the gallery


def _gallery(table: EmbeddingTable) -> str:
    tile = _tiles(table)
    worst, best = _rank_queries(table, worst=True)[:WORST], _rank_queries(table, worst=False)[:BEST]
    k = min(NEIGHBOURS, table.learned.neighbours.shape[1])
    parts = []
    for title, words, rows in (
        ("Worst failures", "Queries whose nearest neighbour is wrong, by average precision AP@R, lowest first.", worst),
        ("Best queries", "By AP@R, highest first.", best),
    ):
        lines = "".join(_query(table, int(row), k, tile) for row in rows)
        none = "" if lines else "<p>None.</p>"
        parts.append(f"<section class='gallery'><h2>{title}</h2><p>{words}</p>{none}{lines}</section>")
    note = (
        f"<p class='key'><span class='mark right'>✓</span> same class as the query, <span class='mark wrong'>✗</span> "
        f"another; under each of the {k} nearest neighbours, nearest first, its Euclidean distance. Classes alternate "
        "among equally good queries.</p>"
    )
    return note + "".join(parts)


def _rank_queries(table: EmbeddingTable, *, worst: bool) -> Ints:
    """Return the rows of failures, worst first, or of other queries, best first; equal scores alternate by class."""
    learned = table.learned
    scored = ~np.isnan(learned.average_precision[table.rows])
    wrong = learned.failures[table.rows]
    rows = table.rows[scored & (wrong if worst else ~wrong)]
    quality = learned.average_precision[rows] * (1 if worst else -1)
    order = np.lexsort((rows, quality))
    turn: dict[tuple[float, int], int] = {}
    turns = np.zeros(len(rows), np.int64)
    for at in order:
        key = float(quality[at]), int(learned.labels[rows[at]])
        turns[at] = turn[key] = turn.get(key, -1) + 1
    return rows[np.lexsort((rows, turns, quality))]


Tile = Callable[[int], str]


def _tiles(table: EmbeddingTable) -> Tile:
    """Return a function that renders a row as <img>, or as its sample index if the data set cannot be read."""
    if table.data is None:
        return lambda row: f"<span class='blank'>{int(table.learned.indices[row])}</span>"
    draw = images.drawer(table.data)

    def tile(row: int) -> str:
        image = draw(int(table.learned.indices[row]))
        sharp = ' class="sharp"' if max(image.shape[:2]) < TILE else ""
        return f'<img src="{images.data_uri(images.fit_into(image, TILE))}" alt=""{sharp}>'

    return tile


def _query(table: EmbeddingTable, row: int, k: int, tile: Tile) -> str:
    learned = table.learned
    lines = (f"AP@R {_percent(float(learned.average_precision[row]))}", f"sample {int(learned.indices[row])}")
    query = _figure(tile(row), "query", table.class_name(int(learned.labels[row])), lines)
    others = zip(learned.neighbours[row, :k], learned.distances[row, :k], learned.right[row, :k], strict=True)
    neighbours = "".join(
        _figure(
            tile(int(other)),
            "right" if right else "wrong",
            table.class_name(int(learned.labels[other])),
            (f"{distance:.3f}",),
        )
        for other, distance, right in others
    )
    return f"<div class='row'>{query}<div class='found'>{neighbours}</div></div>"


def _figure(image: str, kind: str, name: str, lines: Sequence[str]) -> str:
    mark = {"right": "✓", "wrong": "✗"}.get(kind, "")
    caption = {"right": "same class", "wrong": "another class", "query": "query"}[kind]
    badge = f"<span class='mark {kind}' role='img' aria-label='{caption}'>{mark}</span>" if mark else ""
    small = "".join(f"<small>{escape(line)}</small>" for line in lines)
    return (
        f"<figure class='{kind}'><span class='frame'>{image}</span>{badge}"
        f"<figcaption><span class='name'>{_name(name)}</span>{small}</figcaption></figure>"
    )


# ---- classes


def _classes(table: EmbeddingTable) -> str:
    learned = table.learned
    rows = table.rows
    scored = confusions.by_class(learned.labels[rows], learned.average_precision[rows], learned.right[rows, 0])
    labels = scored.labels
    order = np.argsort(scored.map_at_r, kind="stable")[:MOST_CLASSES]
    lines = "".join(
        f"<tr><td>{_name(table.class_name(int(labels[at])))}</td><td>{scored.queries[at]}</td>"
        f"<td>{_percent(float(scored.map_at_r[at]))}</td><td>{_percent(float(scored.recall_at_1[at]))}</td></tr>"
        for at in order
    )
    less = "" if len(labels) <= MOST_CLASSES else f", the lowest {MOST_CLASSES} of {len(labels):,}"
    return (
        f"<details><summary>Scores of each class{less}</summary><table class='classes'><tr><th>Class</th>"
        f"<th>Queries</th><th>MAP@R</th><th>R@1</th></tr>{lines}</table></details>"
    )
