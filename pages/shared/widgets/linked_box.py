"""Shared elements of the published results page: select boxes stored in the URL, and tables as CSV."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

import streamlit as st

from dmlcore.storage.csv_text import as_csv


def linked(
    label: str,
    keys: Sequence[str],
    parameter: str,
    words: Callable[[str], str],
    width: int | Literal["stretch"] = "stretch",
    known: Collection[str] | None = None,
) -> str:
    """Show a select box and return the chosen key, which is stored in the URL; the default is the first key.

    `words` returns the label of a key. `known` lists all existing keys, including those not offered now; a URL with any
    other key causes a warning.
    """
    wanted = st.query_params.get(parameter)
    if wanted is not None and wanted not in (known or keys):
        st.warning(f"The link names an unknown {parameter}. Showing the default instead.", icon=":material/link_off:")
    # the URL overrides the widget's state
    st.session_state[f"box {parameter}"] = wanted if wanted in keys else keys[0]
    chosen = st.selectbox(
        label,
        keys,
        format_func=words,
        key=f"box {parameter}",
        on_change=_follow,
        args=(parameter,),
        width=width,
    )
    return str(chosen)


def _follow(parameter: str) -> None:
    st.query_params[parameter] = st.session_state[f"box {parameter}"]


def csv_button(label: str, rows: Callable[[], Sequence[dict[str, Any]]], name: str, key: str) -> None:
    """Show a button that downloads the rows of a table as NAME.csv; `rows` is called when the button is clicked."""
    st.download_button(
        label,
        lambda: rows_as_csv(rows()),
        f"{name}.csv",
        "text/csv",
        icon=":material/csv:",
        key=key,
        on_click="ignore",
    )


def rows_as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows of a table as CSV; a column that a row lacks is empty."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return as_csv([columns, *([row.get(column) for column in columns] for row in rows)])
