"""Internal terms that no text of a page may contain: keys of a spec, modules, commands and identifiers of runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from streamlit.testing.v1 import AppTest

from dmlcore.spec import keys

SPOKEN = ("title", "header", "subheader", "markdown", "text", "caption", "error", "warning", "info", "success", "toast")
WIDGETS = ("selectbox", "number_input", "text_input", "toggle", "slider", "select_slider", "multiselect", "button")
KEYS = [key for key in keys() if "." in key]
SECTIONS = "|".join({key.partition(".")[0] for key in KEYS})
PATTERNS = {
    "a key of a spec": re.compile(rf"(?<![\w./\\-])(?:{'|'.join(map(re.escape, KEYS))})(?!\w)"),
    "the beginning of a key": re.compile(rf"(?:^|\n)(?:{SECTIONS})(?:\.[a-z_0-9]+)*: "),
    "a parameter": re.compile(r"(?<![\w./\\-])(?:loss|miner|pooling)\.[a-z]\w*(?![\w(])"),
    "a module": re.compile(r"\b(?:dmlcore|pages|streamlit)\.[a-z_]+"),
    "a command": re.compile(r"\bpython -m\b"),
    "the id of a run": re.compile(r"(?<![\w/.=-])\d{8}-\d{4}-[a-z0-9-]+-[0-9a-f]{4}(?![\w-])"),
}


@cache
def leaks(text: str) -> list[str]:
    """Return the internal terms in a text; cached, because pages repeat their texts."""
    return [f"{what}: {match[0]!r}" for what, pattern in PATTERNS.items() for match in pattern.finditer(text)]


def spoken(app: AppTest) -> Iterator[str]:
    """Yield the texts of a page with labels and help of its widgets. Code blocks may contain internal terms."""
    for element in app:  # iterate once: `app.get` searches all elements for each type
        if element.type in SPOKEN:
            if not str(element.value).lstrip().startswith("<style"):
                yield str(element.value)
        elif element.type in WIDGETS:
            yield f"{element.label}\n{element.help or ''}"
