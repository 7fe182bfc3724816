"""What the table of runs shows, as its link says it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from dmlcore.storage.runs import RUN_ID
from pages.shared.state.page_state import ChoiceKind, Flag, Kind, PageState

MOST_COLUMNS = 24
_NAME = re.compile(r"[\w@ ().-]{1,80}")
BELOW = {"runs": "Curves and scores", "mattered": "Which settings mattered"}
VARIANT = "variant"  # to group by everything but the seed


@dataclass(frozen=True)
class Name(Kind):
    """The key of a setting, or the name of another column; what no run has is passed over where it is used."""

    def read(self, value: Any, default: Any) -> Any:
        return value if isinstance(value, str) and _NAME.fullmatch(value) else default

    def text(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class Names(Kind):
    """Several of them, in a link with commas; None: nothing is said, "none": none of them."""

    def read(self, value: Any, default: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return default
        return tuple(dict.fromkeys(name for name in value if isinstance(name, str) and _NAME.fullmatch(name)))[
            :MOST_COLUMNS
        ]

    def parse(self, text: str) -> Any:
        return [name for name in text.split(",", MOST_COLUMNS) if name != "none"]

    def text(self, value: Any) -> str:
        return "" if value is None else ",".join(value) or "none"

    def json(self, value: Any) -> Any:
        return value


@dataclass(frozen=True)
class RunId(Kind):
    """The id of a run."""

    def read(self, value: Any, default: Any) -> Any:
        return value if isinstance(value, str) and RUN_ID.fullmatch(value) else default

    def text(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class TableView(PageState):
    """columns: those of one's choice, None: the settings that vary; group, sort: a key; up: the smallest first.

    baseline: the run that the others are compared with; below: what stands below the table.
    """

    columns: Annotated[tuple[str, ...] | None, Names()] = None
    group: Annotated[str, Name()] = ""
    sort: Annotated[str, Name()] = "started"
    up: Annotated[bool, Flag()] = False
    baseline: Annotated[str, RunId()] = ""
    below: Annotated[str, ChoiceKind(BELOW)] = "runs"
