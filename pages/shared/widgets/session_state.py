"""A session's state as the widgets of Streamlit ask for it: one value at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.runtime.state.common import is_element_id
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import _is_internal_key


class Lookup(Mapping[str, Any]):
    """What `filtered_state` of a session is, without putting all of it together.

    A number field or a box asks it whether its own key is there and None; Streamlit 1.67 then reads the values of all
    widgets, so that a form of 50 fields reads 2,500 (a third of what a rerun of Train took).
    """

    def __init__(self, state: SafeSessionState) -> None:
        self._state = state

    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str) or is_element_id(key) or _is_internal_key(key):
            raise KeyError(key)
        with self._state._lock:
            return self._state._state[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Any]:
        with self._state._lock:
            return self._state._state.filtered_state


def look_up_one_by_one() -> None:
    """From now on sessions hand out such lookups."""
    SafeSessionState.filtered_state = property(Lookup)  # type: ignore[method-assign,assignment]
