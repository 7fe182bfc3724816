"""State of the table of runs, stored in the URL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from dmlcore.storage.runs import RUN_ID
from pages.shared.state.page_state import ChoiceKind, Flag, Kind, PageState

MOST_COLUMNS = 24
_NAME = re.compile(r"[\w@ ().-]{1,80}")
BELOW = {"runs": "Curves and scores", "mattered": "Which settings mattered"}
VARIANT = "variant"  # value of `group` that groups runs by all settings except the seed


@dataclass(frozen=True)
class Matching(Kind):
    """Type of a page-state field that holds a text which matches a pattern, for example the name of a column.

    The table ignores a name that no run has.
    """

    pattern: re.Pattern[str] = _NAME

    def read(self, value: Any, default: Any) -> Any:
        return value if isinstance(value, str) and self.pattern.fullmatch(value) else default


@dataclass(frozen=True)
class Names(Kind):
    """Type of a page-state field that holds several names, separated by commas in the URL.

    The value is None if the URL lacks the parameter. The text "none" stands for an empty selection.
    """

    def read(self, value: Any, default: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return default
        names = dict.fromkeys(name for name in value if isinstance(name, str) and _NAME.fullmatch(name))
        return tuple(names)[:MOST_COLUMNS]

    def parse(self, text: str) -> Any:
        return [name for name in text.split(",", MOST_COLUMNS) if name != "none"]

    def text(self, value: Any) -> str:
        return "" if value is None else ",".join(value) or "none"


@dataclass(frozen=True)
class TableView(PageState):
    """State of the table of runs.

    Attributes:
        columns: Names of the visible columns; None shows the settings that vary.
        group: Key of the setting by which runs are grouped; "" for no groups.
        sort: Column by which runs are sorted.
        up: True for ascending order.
        baseline: ID of the run with which the others are compared; "" for none.
        below: Key in BELOW that selects the view shown below the table.
    """

    columns: Annotated[tuple[str, ...] | None, Names()] = None
    group: Annotated[str, Matching()] = ""
    sort: Annotated[str, Matching()] = "started"
    up: Annotated[bool, Flag()] = False
    baseline: Annotated[str, Matching(RUN_ID)] = ""
    below: Annotated[str, ChoiceKind(BELOW)] = "runs"
