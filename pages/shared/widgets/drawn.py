"""Cache of tables, charts and sentences that are the same for all visitors: computed once and then replayed."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import streamlit as st

from pages.shared.state.cache import Same


def drawn(draw: Callable[..., None], *arguments: Any) -> None:
    """Show the output of `draw(*arguments)`, replayed from a cache if the arguments are identical (see `derived`).

    `draw` is a module-level function that shows no widgets, creates its own containers and depends only on its
    arguments.
    """
    _drawn(draw, Same(arguments))


def _name(draw: Callable[..., None]) -> str:
    return f"{draw.__module__}.{draw.__qualname__}"


# Streamlit records the messages that a cached function sends. The cached value holds the arguments, whose identity is
# the key.
@st.cache_resource(
    max_entries=128, show_spinner=False, hash_funcs={FunctionType: _name, Same: lambda same: repr(same.identity)}
)
def _drawn(draw: Callable[..., None], same: Same) -> Same:
    draw(*same.arguments)
    return same
