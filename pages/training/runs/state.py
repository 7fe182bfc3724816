"""State of the table of runs in the address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from dmlcore.storage.runs import RUN_ID
from pages.shared.state.page_state import ChoiceKind, Flag, Kind, PageState

MOST_COLUMNS = 24
_NAME = re.compile(r"[\w@ ().-]{1,80}")
BELOW = {"runs": "Curves and scores", "mattered": "Which settings mattered"}
VARIANT = "variant"  # group by all settings except the seed


@dataclass(frozen=True)
class Name(Kind):
    """Key of a setting or name of another column; keys that no run has are ignored where they are used."""

    def read(self, value: Any, default: Any) -> Any:
        return value if isinstance(value, str) and _NAME.fullmatch(value) else default

    def text(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class Names(Kind):
    """Several keys, separated by commas in a link; None if the link names none, "none" for an empty selection."""

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
    """Id of a run."""

    def read(self, value: Any, default: Any) -> Any:
        return value if isinstance(value, str) and RUN_ID.fullmatch(value) else default

    def text(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class TableView(PageState):
    """State of the table of runs.

    columns: selected columns; None for the settings that vary. group, sort: keys. up: ascending order.
    baseline: id of the run that the others are compared with. below: view below the table.
    """

    columns: Annotated[tuple[str, ...] | None, Names()] = None
    group: Annotated[str, Name()] = ""
    sort: Annotated[str, Name()] = "started"
    up: Annotated[bool, Flag()] = False
    baseline: Annotated[str, RunId()] = ""
    below: Annotated[str, ChoiceKind(BELOW)] = "runs"
