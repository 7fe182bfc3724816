"""Cache of tables, charts and sentences that are the same for all visitors: computed once, then replayed."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import streamlit as st

from pages.shared.state.cache import Same


def drawn(draw: Callable[..., None], *arguments: Any) -> None:
    """Show the output of `draw(*arguments)`; replay it from the cache if it was drawn with the same arguments before.

    `draw` is a module-level function that shows no widgets, creates its own containers and depends only on `arguments`.
    Arguments are compared as in `cache.derived`.
    """
    _drawn(draw, Same(arguments))


def _name(draw: Callable[..., None]) -> str:
    return f"{draw.__module__}.{draw.__qualname__}"


# Streamlit records the output of a cached function. The cached value keeps the arguments alive, because the cache key
# consists of their ids.
@st.cache_resource(
    max_entries=128, show_spinner=False, hash_funcs={FunctionType: _name, Same: lambda same: repr(same.identity)}
)
def _drawn(draw: Callable[..., None], same: Same) -> Same:
    draw(*same.arguments)
    return same
