"""Tables, charts and sentences that are the same for all visitors: made once, then sent again as they are."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import streamlit as st

from pages.shared.state.cache import Same


def drawn(draw: Callable[..., None], *arguments: Any) -> None:
    """What `draw(*arguments)` puts on a page, for the very same arguments (see `derived`) what it put there before.

    draw: a function of a module that shows no widget, starts its containers itself and asks only its arguments.
    """
    _drawn(draw, Same(arguments))


def _name(draw: Callable[..., None]) -> str:
    return f"{draw.__module__}.{draw.__qualname__}"


# Streamlit notes the messages that a cached function sends. The answer holds the arguments: their identity is the key.
@st.cache_resource(
    max_entries=128, show_spinner=False, hash_funcs={FunctionType: _name, Same: lambda same: repr(same.identity)}
)
def _drawn(draw: Callable[..., None], same: Same) -> Same:
    draw(*same.arguments)
    return same
