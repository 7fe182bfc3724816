"""Grid of query images and their neighbours.

The grid is static HTML with links; a listener reacts to clicks and keys without loading a new page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from pages.shared.widgets.component import component

# The marks ✓ (solid, green) and ✗ (dashed, vermillion) can be distinguished without colour and with colour vision
# deficiency.
STYLE = """<style>
.neighbours { display: flex; flex-direction: column; font-size: 12px; line-height: 1.25; }
.neighbours .row { display: flex; gap: 18px; padding: 14px 0 10px; border-top: 1px solid rgb(128 128 128 / .28); }
.neighbours .row:first-of-type { border-top: 0; }
.neighbours .found { display: grid; gap: 10px; flex: 1; /* eight in a row where they fit */
  grid-template-columns: repeat(auto-fill, minmax(clamp(62px, calc((100% - 70px) / 8), 118px), 1fr)); }
.neighbours figure { margin: 0; position: relative; max-width: 124px; }
.neighbours figure.query { width: 128px; max-width: none; flex: none; }
.neighbours .frame { display: block; position: relative; box-sizing: border-box; width: 100%; aspect-ratio: 1;
  padding: 2px; border: 3px solid transparent; border-radius: 6px; background: rgb(128 128 128 / .10); }
.neighbours .query .frame, .neighbours .unknown .frame { border-color: rgb(128 128 128 / .55); }
.neighbours .right .frame { border-color: var(--right); }
.neighbours .wrong .frame { border-color: var(--wrong); border-style: dashed; }
.neighbours a.frame:hover { box-shadow: 0 0 0 3px color-mix(in srgb, var(--accent) 65%, transparent); }
.neighbours a.frame:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.neighbours img { display: block; width: 100%; height: 100%; object-fit: contain; border-radius: 2px; }
.neighbours img.over { position: absolute; inset: 2px; width: calc(100% - 4px); height: calc(100% - 4px); }
.neighbours .mark { position: absolute; left: -7px; top: -7px; width: 19px; height: 19px; border-radius: 50%;
  font: bold 13px/19px sans-serif; text-align: center; color: var(--on-primary); background: var(--right-fill); }
.neighbours .wrong .mark { background: var(--wrong-fill); }
.neighbours figcaption { margin-top: 4px; overflow-wrap: anywhere; }
.neighbours .name { display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow: hidden; }
.neighbours .query .name { font-weight: 600; font-size: 13px; }
.neighbours .number { opacity: .75; font-variant-numeric: tabular-nums; }
.neighbours a.forces { display: inline-block; margin-top: 3px; color: inherit; text-decoration-color: var(--wrong); }
.neighbours .lines { flex: 1; display: flex; flex-direction: column; gap: 10px; min-width: 0; }
.neighbours .line { display: flex; gap: 12px; }
.neighbours .of { flex: none; width: 84px; }
.neighbours .of b { display: inline-block; min-width: 20px; padding: 0 5px; text-align: center; border-radius: 5px;
  background: rgb(128 128 128 / .22); }
.neighbours .pairs { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 22px 28px; }
.neighbours .pair > div { display: flex; gap: 12px; }
.neighbours .pair figure { max-width: none; flex: 1; min-width: 0; }
.neighbours .pair p { margin: 0 0 8px; font-variant-numeric: tabular-nums; }
@media (max-width: 640px) { .neighbours .row, .neighbours .line { flex-direction: column; } }
</style>"""

_listener = component("kit/neighbour_grid")


@dataclass(frozen=True)
class Tile:
    """Image of the sample with index `index` and class `name`, with the texts `lines` below it.

    If `src` is given, the image at this URL is shown; it is not a sample and gets no link. `over` is the URL of an
    image drawn over the sample; `forces` is the URL query string of a link to the forces that act on the sample.
    """

    index: int
    name: str
    lines: tuple[str, ...] = ()
    src: str = field(default="", kw_only=True)
    over: str = field(default="", kw_only=True)
    forces: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Neighbour(Tile):
    """Image of a neighbour; `right` is True if it has the class of the query, False if not, None if this is unknown."""

    right: bool | None = False


@dataclass(frozen=True)
class RunNeighbours:
    """Neighbours of a query according to one of several runs, with the run's letter and the texts below this letter."""

    mark: str
    run: str
    lines: tuple[str, ...]
    neighbours: Sequence[Neighbour]


Row = tuple[Tile, Sequence[Neighbour]]
Link = Callable[[int], str]
_KIND: Mapping[bool | None, tuple[str, str]] = {True: ("right", "✓"), False: ("wrong", "✗"), None: ("unknown", "")}


def html(rows: Sequence[Row], address: str, link: Link) -> str:
    """Return the HTML of a grid in which each row shows a query followed by its neighbours.

    Args:
        rows: Queries with their neighbours.
        address: URL prefix of the images, to which the index of a sample is appended.
        link: Function that returns the URL of this page with the sample of a given index as the query.
    """
    body = "".join(
        f'<div class="row">{_query(query, address, link)}<div class="found">{_found(tiles, address, link)}</div></div>'
        for query, tiles in rows
    )
    return f'{STYLE}<div class="neighbours">{body}</div>'


def compared(rows: Sequence[tuple[Tile, Sequence[RunNeighbours]]], address: str, link: Link) -> str:
    """Return the HTML of a grid in which each query has one line of neighbours per run.

    See `html` for `address` and `link`.
    """
    body = ""
    for query, lines in rows:
        each = "".join(
            f'<div class="line"><div class="of"><b title="{escape(line.run)}">{escape(line.mark)}</b>'
            f'{_numbers(line.lines)}</div><div class="found">{_found(line.neighbours, address, link)}</div></div>'
            for line in lines
        )
        body += f'<div class="row">{_query(query, address, link)}<div class="lines">{each}</div></div>'
    return f'{STYLE}<div class="neighbours">{body}</div>'


def pairs(rows: Sequence[tuple[str, Tile, Tile]], address: str, link: Link) -> str:
    """Return the HTML of pairs of images, each below a text; see `html` for `address` and `link`."""
    body = "".join(
        f'<div class="pair"><p>{escape(words)}</p><div>'
        + "".join(_figure(t, address, link, kind="query", mark="", alt=f"class {t.name}") for t in tiles)
        + "</div></div>"
        for words, *tiles in rows
    )
    return f'{STYLE}<div class="neighbours"><div class="pairs">{body}</div></div>'


def listen(
    key: str,
    *,
    keys: Sequence[str] = (),
    first: int = -1,
    ahead: tuple[str, Sequence[int]] = ("", ()),
    **callbacks: Callable[[], None],
) -> dict[str, Any]:
    """Listen for clicks and keys on the tiles of this page.

    Args:
        key: Key of the component in the session state.
        keys: Enabled groups of keys, out of "forces", "map", "pages" and "back".
        first: Index of the first tile, to which the focus returns after a key press.
        ahead: URL prefix and indices of images to prefetch after those of this page.
        callbacks: on_query_change, on_forces_change, ...; each may read session_state[key]["query"] and so on.

    Returns:
        {event: value} for the events of this rerun; the value is None if the event did not occur.
    """
    wanted = dict.fromkeys(("query", "forces", "map", "turn", "back"))
    quiet = {f"on_{name}_change": lambda: None for name in wanted}
    event = _listener(
        key=key,
        data={"keys": list(keys), "first": first, "images": ahead[0], "ahead": list(ahead[1])},
        **(quiet | callbacks),
    )
    return wanted | event


def clicked(key: str, on_click: Callable[[], None]) -> int | None:
    """Return the index of the image clicked in this rerun, else None.

    `on_click` is called first and may read the index from session_state[key]["query"].
    """
    chosen = listen(key, on_query_change=on_click)["query"]
    return chosen if isinstance(chosen, int) else None


def _query(query: Tile, address: str, link: Link) -> str:
    return _figure(query, address, link, kind="query", mark="", alt=f"query {query.index}: class {query.name}")


def _found(neighbours: Sequence[Neighbour], address: str, link: Link) -> str:
    return "".join(_neighbour(tile, rank, address, link) for rank, tile in enumerate(neighbours, 1))


def _neighbour(tile: Neighbour, rank: int, address: str, link: Link) -> str:
    kind, mark = _KIND[tile.right]
    verdict = f", {kind}" if mark else ""
    alt = f"neighbour {rank}: class {tile.name}{verdict}, {' '.join(tile.lines)}"
    # a neighbour gets only the keyboard shortcut to its forces, because links below all images would be too many
    bare = replace(tile, forces="")
    return _figure(bare, address, link, kind=kind, mark=mark, alt=alt, forces=tile.forces)


def _figure(tile: Tile, address: str, link: Link, *, kind: str, mark: str, alt: str, forces: str = "") -> str:
    name, image = escape(tile.name), escape(tile.src or f"{address}{tile.index}")
    inside = f'<img src="{image}" alt="{escape(alt)}" loading="lazy">'
    if tile.over:
        inside += f'<img class="over" src="{escape(tile.over)}" alt="" loading="lazy">'
    if tile.src:
        frame = f'<span class="frame">{inside}</span>'
    else:
        key = escape(tile.forces or forces)
        frame = (
            f'<a class="frame" data-index="{tile.index}"{f" data-forces={chr(34)}{key}{chr(34)}" if key else ""} '
            f'href="{escape(link(tile.index))}" title="{escape(f"{alt}; sample {tile.index}")}">{inside}</a>'
        )
    act = (
        f'<a class="forces" data-forces="{escape(tile.forces)}" href="failures?{escape(tile.forces)}">Forces</a>'
        if tile.forces
        else ""
    )
    return (
        f'<figure class="{kind}">{frame}'
        + (f'<span class="mark" aria-hidden="true">{mark}</span>' if mark else "")
        + f'<figcaption><bdi class="name" title="{name}">{name}</bdi>{_numbers(tile.lines)}{act}</figcaption></figure>'
    )


def _numbers(lines: Sequence[str]) -> str:
    return "".join(f'<div class="number">{escape(line)}</div>' for line in lines)
