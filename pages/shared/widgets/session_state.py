"""Faster access to single values of Streamlit's session state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.runtime.state.common import is_element_id
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import _is_internal_key


class Lookup(Mapping[str, Any]):
    """Lazy replacement for a session's `filtered_state` that does not build the whole dictionary.

    Number inputs and select boxes only check if their own key exists and is None. For each such check, Streamlit 1.67
    reads the values of all widgets, so that a form with 50 widgets reads 2,500 values (a third of the rerun time of the
    Train page).
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
    """Patch Streamlit so that the `filtered_state` of sessions is a `Lookup`."""
    SafeSessionState.filtered_state = property(Lookup)  # type: ignore[method-assign,assignment]
