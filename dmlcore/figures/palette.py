"""Colours of the app and its figures, read from palette.json.

The file is also read by the pages (assets/src/kit/colours.ts) and by the build of their style sheets (assets/build.js).
A role ("positive", "right", "page") names a colour or lists one. A colour lists its values in the light theme, in the
dark theme, and as text in either, where a text needs another contrast; a missing value equals the one before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FILE: dict[str, Any] = json.loads(Path(__file__).with_name("palette.json").read_text("utf-8"))
Entry = str | list[str]  # name of a colour, or its values


def _pick(entry: Entry, dark: bool, text: bool = False) -> str:
    values: list[str] = _FILE["colours"][entry] if isinstance(entry, str) else entry
    theme = values[min(dark, len(values) - 1)]
    return values[2 + dark] if text and len(values) == 4 else theme


def _column(group: str, name: str) -> dict[bool, tuple[str, ...]]:
    return {dark: tuple(_pick(entry, dark) for entry in _FILE[group][name]) for dark in (False, True)}


def inks(dark: bool) -> dict[str, str]:
    """Return the colour "#rrggbb" or "#rrggbbaa" of each role; "positiveText" is the role "positive" as text."""
    roles: dict[str, Entry] = _FILE["roles"]
    return {name + end: _pick(entry, dark, bool(end)) for name, entry in roles.items() for end in ("", "Text")}


def mixed(colour: str, page: str, opacity: float) -> str:
    """Return the opaque colour "#rrggbb" that `colour` has with an opacity in 0..1 on a page."""
    parts = [round(opacity * int(colour[i : i + 2], 16) + (1 - opacity) * int(page[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{part:02x}" for part in parts)


INK = {dark: inks(dark) for dark in (False, True)}
# Colours of a scale or of a list of classes, by name and `dark`.
SCALES = {name: _column("scales", name) for name in _FILE["scales"]}
LISTS = {name: _column("lists", name) for name in _FILE["lists"]}


def custom_properties() -> str:
    """Return the roles as CSS custom properties of `:root`: `--positive`, `--positive-text`, `--right`, ..."""
    light, dark = INK[False], INK[True]
    rows = [
        f"--{''.join(f'-{x.lower()}' if x.isupper() else x for x in role)}:light-dark({light[role]},{dark[role]})"
        for role in light
    ]
    return f":root{{{';'.join(rows)}}}"
