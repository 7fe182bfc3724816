"""Queries and their neighbours as one piece of HTML with links, and a listener that makes a click quick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import streamlit as st

# ✓ solid #009E73 and ✗ dashed #D55E00: told apart without colour, and by colour-blind eyes.
STYLE = """<style>
.neighbours { display: flex; flex-direction: column; font-size: 12px; line-height: 1.25; }
.neighbours .row { display: flex; gap: 18px; padding: 14px 0 10px; border-top: 1px solid rgb(128 128 128 / .28); }
.neighbours .row:first-of-type { border-top: 0; }
.neighbours .found { display: grid; grid-template-columns: repeat(auto-fill, minmax(82px, 1fr)); gap: 10px; flex: 1; }
.neighbours figure { margin: 0; position: relative; max-width: 104px; }
.neighbours figure.query { width: 128px; max-width: none; flex: none; }
.neighbours .frame { display: block; box-sizing: border-box; width: 100%; aspect-ratio: 1; padding: 2px;
  border: 3px solid transparent; border-radius: 6px; background: rgb(128 128 128 / .10); }
.neighbours .query .frame { border-color: rgb(128 128 128 / .55); }
.neighbours .right .frame { border-color: #009E73; }
.neighbours .wrong .frame { border-color: #D55E00; border-style: dashed; }
.neighbours a.frame:hover { box-shadow: 0 0 0 3px rgb(86 180 233 / .65); }
.neighbours a.frame:focus-visible { outline: 3px solid #56B4E9; outline-offset: 2px; }
.neighbours img { display: block; width: 100%; height: 100%; object-fit: contain; border-radius: 2px; }
.neighbours .mark { position: absolute; left: -7px; top: -7px; width: 19px; height: 19px; border-radius: 50%;
  font: bold 13px/19px sans-serif; text-align: center; color: #fff; background: #00795A; }
.neighbours .wrong .mark { background: #B34E00; }
.neighbours figcaption { margin-top: 4px; overflow-wrap: anywhere; }
.neighbours .name { display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow: hidden; }
.neighbours .query .name { font-weight: 600; font-size: 13px; }
.neighbours .number { opacity: .75; font-variant-numeric: tabular-nums; }
@media (max-width: 640px) { .neighbours .row { flex-direction: column; } }
</style>"""

# A plain link would load the whole app again; this tells Python instead. With a modifier key it stays a link.
_LISTENER = """
const pick = Symbol.for("dml-neighbours");
export default ({ parentElement, setTriggerValue }) => {
  document.removeEventListener("click", document[pick]);
  document[pick] = (event) => {
    const link = event.target.closest?.(".neighbours a[data-index]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    setTriggerValue("query", Number(link.dataset.index));
  };
  document.addEventListener("click", document[pick]);
  return () => document.removeEventListener("click", document[pick]);
};
"""
_clicks = st.components.v2.component("dml_neighbour_clicks", js=_LISTENER)


@dataclass(frozen=True)
class Tile:
    """One picture: sample `index` of class `name`; `lines` stand under it."""

    index: int
    name: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Neighbour(Tile):
    """A picture that was found: whether its class is the query's."""

    right: bool = False


Row = tuple[Tile, Sequence[Neighbour]]


def html(rows: Sequence[Row], picture: str, link: Callable[[int], str]) -> str:
    """The grid; `picture` + index is the address of a picture, link(index) that of the page with it as the query."""
    return f'{STYLE}<div class="neighbours">{"".join(_row(row, picture, link) for row in rows)}</div>'


def clicked(key: str, on_click: Callable[[], None]) -> int | None:
    """Listen for clicks on pictures; the index of the one clicked just now, which `on_click` may read under `key`."""
    chosen = _clicks(key=key, on_query_change=on_click, height=1).get("query")
    return chosen if isinstance(chosen, int) else None


def _row(row: Row, picture: str, link: Callable[[int], str]) -> str:
    query, found = row
    neighbours = "".join(
        _figure(
            tile,
            picture,
            link,
            kind="right" if tile.right else "wrong",
            mark="✓" if tile.right else "✗",
            alt=f"neighbour {rank}: class {tile.name}, {'right' if tile.right else 'wrong'}, {' '.join(tile.lines)}",
        )
        for rank, tile in enumerate(found, 1)
    )
    first = _figure(query, picture, link, kind="query", mark="", alt=f"query {query.index}: class {query.name}")
    return f'<div class="row">{first}<div class="found">{neighbours}</div></div>'


def _figure(tile: Tile, picture: str, link: Callable[[int], str], *, kind: str, mark: str, alt: str) -> str:
    title, name = escape(f"{alt}; sample {tile.index}"), escape(tile.name)
    lines = "".join(f'<div class="number">{escape(line)}</div>' for line in tile.lines)
    return (
        f'<figure class="{kind}"><a class="frame" data-index="{tile.index}" href="{escape(link(tile.index))}" '
        f'title="{title}"><img src="{escape(picture)}{tile.index}" alt="{escape(alt)}" loading="lazy"></a>'
        + (f'<span class="mark" aria-hidden="true">{mark}</span>' if mark else "")
        + f'<figcaption><bdi class="name" title="{name}">{name}</bdi>{lines}</figcaption></figure>'
    )
