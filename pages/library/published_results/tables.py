"""Tables view: search over all rows, and the selected table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from dmlcore.published.collection import SHORT, PublishedRow, PublishedTable, collection, loss_title, search
from pages.library.published_results import table as table_view
from pages.shared.widgets.linked_box import csv_button, linked

ALL = ""  # value of an unset filter
EVERYWHERE = ("R@1", "MAP@R", "NMI")  # score columns of the search results
FILTERS = ("q", "source", "data", "loss", "protocol")
PARAMETER = "table"  # URL parameter


def show() -> None:
    """Show the filters, the matching rows, and one of the tables with matching rows."""
    tables = _filtered()
    asked = any(st.session_state.get(f"published_{name}") for name in FILTERS)
    if not tables:
        st.info(
            "No row matches. Search for a loss, a data set, a network or a setting, for example contrastive, CUB, "
            "m=0.1."
        )
        return
    if asked:
        _matches(tables)
    keys = list(dict.fromkeys(table.key for table, _ in tables))
    table_view.show(_chosen(keys), {id(row) for _, row in tables})


def _filtered() -> list[tuple[PublishedTable, PublishedRow]]:
    tables = collection()
    rows = [row for table in tables for row in table.rows]
    losses = sorted({row.loss for row in rows if row.loss}, key=loss_title)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Search",
            key="published_q",
            bind="query-params",
            placeholder="contrastive CUB 512",
            icon=":material/search:",
            width=280,
            help="Finds rows that contain all words in method, loss, data, network, setting, caption or source",
        )
        source = _box("Source", "source", list(SHORT), lambda key: SHORT[key], 170)
        datasets = sorted({row.dataset for row in rows if row.dataset}, key=str.lower)
        dataset = _box("Data", "data", datasets, str, 160)
        loss = _box("Loss", "loss", losses, loss_title, 220)
        known = list(dict.fromkeys(table.protocol for table in tables if table.protocol))
        protocol = _box("Protocol", "protocol", known, str, 220)
    return search(text or "", source=source, dataset=dataset, protocol=protocol, loss=loss)


def _box(label: str, name: str, options: Sequence[str], words: Callable[[str], str], width: int) -> str:
    chosen = st.selectbox(
        label,
        [ALL, *options],
        format_func=lambda value: words(value) if value else "all",
        key=f"published_{name}",
        bind="query-params",
        width=width,
    )
    return str(chosen or ALL)


def _matches(published: Sequence[tuple[PublishedTable, PublishedRow]]) -> None:
    """Show the rows of all tables that match the filters, with the score columns in EVERYWHERE."""
    rows = [
        {
            "table": table.title,
            "data": row.dataset,
            "network": row.network,
            "size": row.size,
            "method": row.method,
            "setting": row.setting,
            **{column: row.score(column) for column in EVERYWHERE},
            "protocol": table.protocol,
        }
        for table, row in published
    ]
    tables = len({table.key for table, _ in published})
    st.markdown(
        f"**{len(rows):,} rows of {tables} tables** match. Click a column header to sort. Scores of different "
        "protocols are not comparable."
    )
    config = {column: st.column_config.NumberColumn(column, format="%.2f") for column in EVERYWHERE}
    st.dataframe(rows, hide_index=True, key="published_matches", height=300, column_config=config, placeholder="–")
    csv_button("Download rows (CSV)", lambda: rows, "published-rows", "published_matches_csv")


def _chosen(keys: Sequence[str]) -> PublishedTable:
    tables = {table.key: table for table in collection()}
    chosen = linked("Table", keys, PARAMETER, lambda key: f"{tables[key].title}: {tables[key].caption}", known=tables)
    return tables[chosen]
