"""Each colour of the app is written once, in dmlcore/figures/palette.json; figures, pages and style sheets read it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from dmlcore.figures import palette
from pages.shared.server import static_files

ROOT = Path(__file__).resolve().parents[2]
PLACES = {"assets/src": (".ts", ".tsx", ".css", ".html"), "dmlcore": (".py", ".css", ".js"), "pages": (".py",)}
# "#rrggbb" or "#rgb" as a whole word; a transparent or fully opaque black is no colour of the palette
TYPED = re.compile(r"(?<![&\w])#(?:[0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3})\b", re.IGNORECASE)
NEUTRAL = {"#00000000", "#000", "#fff"}  # masks, and shadows under white letters


def test_no_colour_is_typed_outside_the_palette() -> None:
    found, files = [], 0
    for folder, ends in PLACES.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in ends and path.is_file():
                files += 1
                for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                    code = re.sub(r"(^|\s)(#|//) .*", "", line) if path.suffix != ".css" else line
                    # issue numbers and anchors consist of digits alone
                    found += [
                        f"{path.relative_to(ROOT)}:{number}: {colour}"
                        for colour in TYPED.findall(code)
                        if colour.lower() not in NEUTRAL and not re.fullmatch(r"#\d{3}", colour)
                    ]
    assert files > 500
    assert not found, "name a role of palette.json instead:\n" + "\n".join(found)


def test_one_line_changes_the_colour_of_positives(monkeypatch: pytest.MonkeyPatch) -> None:
    before = palette.custom_properties()
    text = (ROOT / "dmlcore/figures/palette.json").read_text("utf-8")
    lines = [line for line in text.splitlines() if '"positive"' in line]
    assert len(lines) == 1
    changed = text.replace(lines[0], '    "positive": ["#123456", "#234567", "#345678", "#456789"],')
    monkeypatch.setattr(palette, "_FILE", json.loads(changed))
    inks = {dark: palette.inks(dark) for dark in (False, True)}
    differ = {role for dark in inks for role, colour in inks[dark].items() if colour != palette.INK[dark][role]}
    assert differ == {"positive", "positiveText"}
    assert (inks[False]["positive"], inks[True]["positiveText"]) == ("#123456", "#456789")
    monkeypatch.setattr(palette, "INK", inks)
    assert set(palette.custom_properties().split(";")) ^ set(before.split(";")) == {
        "--positive:light-dark(#123456,#234567)",
        "--positive-text:light-dark(#345678,#456789)",
        f"--positive:light-dark({_role(before, 'positive')})",
        f"--positive-text:light-dark({_role(before, 'positive-text')})",
    }


def _role(properties: str, name: str) -> str:
    found = re.search(rf"--{name}:light-dark\(([^)]*)\)", properties)
    assert found
    return found[1]


def test_style_sheets_have_the_colours_of_the_figures() -> None:
    expected = palette.custom_properties().removeprefix(":root{").removesuffix("}")
    assert expected.count("--") > 40
    for sheet in ("kit/page/page.css", "kit/present/notes.css"):
        built = static_files.files()[sheet][0].decode()
        assert expected.lower() in built.lower(), f"{sheet} is stale"


def test_streamlit_has_the_colours_of_the_palette() -> None:
    theme = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))["theme"]
    roles = {
        "primaryColor": "primary",
        "backgroundColor": "page",
        "secondaryBackgroundColor": "soft",
        "textColor": "body",
        "codeTextColor": "body",
    }
    for dark, name in ((False, "light"), (True, "dark")):
        assert theme[name] == {option: palette.INK[dark][role] for option, role in roles.items()}
    assert tuple(theme["chartCategoricalColors"]) == palette.LISTS["runs"][False]
