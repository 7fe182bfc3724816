"""Table of runs: search, grouping, sorting and choice of columns, all stored in the URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.storage.csv_text import as_csv
from dmlcore.storage.runs import Run, RunStore
from pages.shared.widgets import run_status
from pages.shared.words import titles
from pages.training.runs.state import BELOW, MOST_COLUMNS, VARIANT, TableView
from pages.training.runs.table import baseline as baselines
from pages.training.runs.table import rows
from pages.training.runs.table.columns import CURVE, POINTS, Table, configured, heading
from pages.training.runs.table.groups import Group, groups
from pages.training.runs.table.rows import Line

KEY, GROUPS, ORDERS = "runs-table", "runs-groups", "runs-orders"
ROW = 32  # pixels
# visible rows of the runs, of the runs below a table of groups, and of the groups; the half row shows that there are
# more
IN_SIGHT, GROUPED_IN_SIGHT, GROUPS_IN_SIGHT = 6.5, 2.5, 5.5


def view() -> TableView:
    """Return the state of the table from the URL."""
    return TableView.from_query(st.query_params)


def change(**fields: Any) -> None:
    """Write changed fields of the table's state into the URL."""
    now = TableView.of(view().to_json() | fields).to_query()
    for name in TableView.kinds:
        if name in now:
            st.query_params[name] = now[name]
        else:
            st.query_params.pop(name, None)


def start(key: str, value: Any, blank: Any) -> Any:
    """Return the initial value to pass to a widget so that it shows `value`; `blank` is the widget's default value.

    If the session state holds another value for the widget, because the URL was changed, that value is replaced and
    `blank` is returned: Streamlit does not accept both a session-state value and an initial value. Setting the session
    state alone is not enough, because an interrupted rerun of the script may lose it, and the browser would then show
    the default value.
    """
    if st.session_state.get(key, value) == value:
        return value
    st.session_state[key] = value
    return blank


def show(store: RunStore, total: int, shown: Sequence[Run]) -> tuple[Sequence[Run], Sequence[Group]]:
    """Draw the controls, the groups if requested, and one row per run; store the selection in the URL.

    Args:
        store: The store with the runs.
        total: Number of runs in the store.
        shown: The selected runs.

    Returns:
        The runs in the table, newest first, and the groups, which are empty unless runs are grouped.
    """
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    runs = _listed(store, total, controls)
    lines = [rows.line(run) for run in runs]
    with controls:
        asked, columns = _controls(lines)
    lines = rows.sort_lines(lines, asked.sort, up=asked.up)
    run = baselines.find_baseline(store, asked.baseline)
    pinned = rows.line(run) if run else None
    made = groups(lines, asked.group) if asked.group else []
    if made:
        _groups(made, asked.group, pinned, marked=not shown)
        lines = [each for group in made for each in group.lines]
    elif run:
        lines.sort(key=lambda each: each.run.id != run.id)  # the pinned run comes first
    if lines:
        table = _table(lines, columns, pinned)
        instead = () if shown or made or view().below == "mattered" else runs[:1]
        _runs(table, lines, shown, instead, in_sight=GROUPED_IN_SIGHT if made else IN_SIGHT)
        _below(table, lines, pinned, asked, shown)
    return runs, made


def _listed(store: RunStore, total: int, controls: DeltaGenerator) -> Sequence[Run]:
    """Draw the search box in `controls`; return the newest runs that match the search text, by default all.

    At most `run_status.MOST_LISTED` runs are returned.
    """
    most = run_status.MOST_LISTED
    with controls:
        asked = _find() if total > 1 else ""
    if not asked:
        runs = store.newest(most)
        if total > most:
            st.caption(f"The newest {most} of {total:,} runs.")
        return runs
    runs = store.find(titles.searched(asked, lambda run_id: rows.note(Run(store.root / run_id))), most)
    if not runs:
        st.info("No run matches all of these words.", icon=":material/search_off:")
    else:
        st.caption(f"{f'The newest {most} matches' if len(runs) == most else len(runs)} of {total:,} runs.")
    return runs


def _find() -> str:
    return st.text_input(
        "Find",
        key="find",
        bind="query-params",
        max_chars=100,
        icon=":material/search:",
        width=290,
        placeholder="loss, data, network, name, id or note",
    )


def _controls(lines: Sequence[Line]) -> tuple[TableView, list[str]]:
    """Draw the controls for groups, order and columns; return the table's state and the visible columns.

    Invalid values in the URL are replaced with their defaults.
    """
    asked, offered, varied = view(), rows.available_columns(lines), rows.varying_keys(lines)
    columns = rows.default_columns(lines) if asked.columns is None else [c for c in asked.columns if c in offered]
    by = ["", VARIANT, *varied, *([asked.group] if asked.group in offered and asked.group not in varied else [])]
    order = [*dict.fromkeys([*rows.FIXED, *rows.LAST, *columns, *varied])]
    group = asked.group if asked.group in by else ""
    sort = asked.sort if asked.sort in [*order, *offered] else "started"
    order += [sort] if sort not in order else []
    if len(lines) < 2:
        return TableView(baseline=asked.baseline), columns
    first = by.index(start("runs-group", group, by[0]))
    st.selectbox("Group by", by, first, key="runs-group", format_func=_group_title, on_change=_changed, width=170)
    first = order.index(start("runs-sort", sort, order[0]))
    st.selectbox("Sort by", order, first, key="runs-sort", format_func=heading, on_change=_changed, width=170)
    st.toggle("Ascending", start("runs-up", asked.up, False), key="runs-up", on_change=_changed)
    with st.popover("Columns", icon=":material/view_column:"):
        st.multiselect(
            "Visible columns",
            offered,
            start("runs-columns", columns, None),
            key="runs-columns",
            format_func=rows.title,
            max_selections=MOST_COLUMNS,
            on_change=lambda: change(columns=st.session_state["runs-columns"]),
            help="Settings in which these runs differ come first",
        )
        if asked.columns is not None:
            st.button("Show varying settings", key="runs-as-vary", on_click=lambda: change(columns=None))
    return TableView(columns=asked.columns, group=group, sort=sort, up=asked.up, baseline=asked.baseline), columns


def _changed() -> None:
    change(group=st.session_state["runs-group"], sort=st.session_state["runs-sort"], up=st.session_state["runs-up"])


def _group_title(name: str) -> str:
    return {"": "none", VARIANT: "all settings but the seed"}.get(name) or rows.title(name)


def _table(lines: Sequence[Line], columns: Sequence[str], pinned: Line | None) -> Table:
    """Return the values of each column by name; a column with a setting is named by the setting's label in the form."""
    table: Table = {name: rows.values(name, lines) for name in rows.FIXED}
    for name in rows.FEATURES:
        if not any(value is not None for value in table[name]):  # no run has such a baseline
            del table[name]
    if pinned:
        table |= baselines.compare_with(lines, pinned)
    table |= {rows.title(name): rows.values(name, lines) for name in columns}
    if any(each.note for each in lines):
        table["note"] = rows.values("note", lines)
    return table | {"started": rows.values("started", lines)}


def _runs(
    table: Table, lines: Sequence[Line], shown: Sequence[Run], instead: Sequence[Run], *, in_sight: float
) -> None:
    """Draw one row per run; keep the same runs selected when runs are added or the order changes.

    Args:
        table: Values of each column.
        lines: The runs, in the order of the rows.
        shown: The selected runs.
        instead: Runs whose curves are drawn while no run is selected.
        in_sight: Number of rows visible without scrolling.
    """
    ids = [each.run.id for each in lines]
    drawn = [run.id for run in (*shown, *instead)]
    marks = [[str(drawn.index(run_id) + 1)] if run_id in drawn else [] for run_id in ids]
    table = {"run": table["run"], CURVE: marks} | table
    selected = sorted(ids.index(run.id) for run in shown if run.id in ids)
    state = st.session_state.get(KEY)
    orders = st.session_state.get(ORDERS, [])
    if state is not None and sorted(state.selection.rows) != selected:
        st.session_state[KEY] = {"selection": {"rows": selected}}
    elif state is None or orders[-1:] == [ids]:  # the browser already shows this order, so older ones are discarded
        orders = []
    st.session_state[ORDERS] = [*(order for order in orders if order != ids), ids][-4:]
    st.dataframe(
        table,
        key=KEY,
        hide_index=True,
        placeholder="–",
        height=_height(in_sight, len(ids)),
        row_height=ROW,
        selection_mode="multi-row",
        selection_default={"selection": {"rows": selected}},
        on_select=_select,
        column_config=configured(table),
        alt="Runs, one per row",
    )


def _height(most: float, rows: int) -> int:
    """Return the height in pixels of a table with a heading, a border, and at most `most` visible rows."""
    return int(ROW * (1 + min(most, rows))) + 2


def _select() -> None:
    """Update the selection in the URL after a click in the table.

    Runs that were already selected keep their order and colours; selected runs hidden by a search remain selected.

    If a run was just added, the browser may still show an older order of the rows. The row numbers are therefore
    interpreted with the recent order that needs the fewest clicks from the current selection; of equals, the newest.
    """
    rows, orders = set(st.session_state[KEY].selection.rows), st.session_state[ORDERS]
    named = [run_id for run_id in st.query_params.get("run", "").split(",") if run_id]

    def clicks(ids: Sequence[str]) -> int:
        return len(rows ^ {row for row, run_id in enumerate(ids) if run_id in named})

    ids = min(reversed(orders), key=clicks)
    marked = [ids[row] for row in sorted(rows) if row < len(ids)]
    hides = bool(st.session_state.get("find"))
    before = [run_id for run_id in named if run_id in marked or (hides and run_id not in ids)]
    choose(list(dict.fromkeys([*before, *marked]))[: run_status.MOST_CHOSEN])


def choose(ids: Sequence[str]) -> None:
    """Write the ids of the selected runs into the URL."""
    if ids:
        st.query_params["run"] = ",".join(ids)
    else:
        st.query_params.pop("run", None)


def _groups(made: Sequence[Group], by: str, pinned: Line | None, *, marked: bool) -> None:
    """Draw one row per group; a click selects its runs. If `marked`, each row shows the colour of the group's curve."""
    lines = [each for group in made for each in group.lines]
    noises = baselines.noise(lines, pinned) if pinned and by == VARIANT else {}
    own = pinned.variant if pinned else ""
    table: Table = {
        _group_title(by) if by != VARIANT else "settings": [group.name for group in made],
        CURVE: [[str(k + 1)] if marked and k < run_status.MOST_CHOSEN else [] for k in range(len(made))],
        "runs": [len(group.lines) for group in made],
        "seeds": [group.seeds for group in made],
        "after": [None if group.mean is None else 100 * group.mean for group in made],
        "deviation": [None if group.deviation is None else 100 * group.deviation for group in made],
        "best": [100 * max(group.scores) if group.scores else None for group in made],
    }
    if noises:
        of = [group.lines[0].variant for group in made]
        table[POINTS] = ["the baseline" if name == own else noises.get(name) for name in of]
    number = st.column_config.NumberColumn
    st.dataframe(
        table,
        key=GROUPS,
        hide_index=True,
        placeholder="–",
        selection_mode="single-row",
        on_select=lambda: _select_group(made),
        height=_height(GROUPS_IN_SIGHT, len(made)),
        row_height=ROW,
        column_config={
            CURVE: configured({})[CURVE],
            "after": number(format="%.1f %%", help="mean test MAP@R of the runs that have one"),
            "deviation": number(format="%.2f", help="standard deviation over the runs, in points"),
            "best": number(format="%.1f %%"),
        },
        alt="Groups of runs, one per row",
    )


def _select_group(made: Sequence[Group]) -> None:
    for row in st.session_state[GROUPS].selection.rows:
        choose([each.run.id for each in made[row].lines[: run_status.MOST_CHOSEN]])


def _below(table: Table, lines: Sequence[Line], pinned: Line | None, asked: TableView, shown: Sequence[Run]) -> None:
    """Draw the controls below the table: choice of view, a hint, a button to unpin the baseline, and a CSV download."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if len(lines) > 1:
            st.segmented_control(
                "Below the table",
                list(BELOW),
                default=start("below-table", view().below, None),
                required=True,
                format_func=BELOW.__getitem__,
                key="below-table",
                on_change=lambda: change(below=st.session_state["below-table"]),
                label_visibility="collapsed",
            )
        group = "a group or " if asked.group else ""
        what = f"Select {group}up to {run_status.MOST_CHOSEN} rows; the link keeps the selection."
        if view().below == "mattered":
            what = "Uses all finished runs in this table, selected or not."
        elif not shown and not asked.group:
            what = f"No run is selected, so the newest is shown. {what}"
        st.caption(what, width="stretch")
        if asked.baseline:
            label = f"Unpin {pinned.label}" if pinned else "Unpin the missing baseline"
            unpin: dict[str, Any] = {"on_click": change, "kwargs": {"baseline": ""}}
            st.button(label, key="unpin", icon=":material/keep_off:", type="tertiary", **unpin)
        st.download_button(
            "CSV",
            lambda: _csv(table, lines),
            "runs.csv",
            "text/csv",
            key="runs-csv",
            icon=":material/download:",
            on_click="ignore",
            help="The visible rows and columns, with the ids of the runs",
        )


def _csv(table: Table, lines: Sequence[Line]) -> str:
    """Return the visible rows and columns as CSV, preceded by a column with the ID of each run."""
    headings = ["id", *(heading(name) for name in table)]
    columns = [[each.run.id for each in lines], *table.values()]
    return as_csv([headings, *zip(*columns, strict=True)])
