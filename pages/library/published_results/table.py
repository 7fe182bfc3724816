"""One published table: its rows, our results, notes and errata. The best scores within the noise are marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pandas as pd
import streamlit as st

from dmlcore.experiments import protocols, studies
from dmlcore.published import noise
from dmlcore.published.collection import PublishedRow, PublishedTable
from pages.library.published_results import service as published_service
from pages.library.published_results.service import Ours
from pages.shared.widgets import menu
from pages.shared.widgets.drawn import drawn
from pages.shared.widgets.linked_box import csv_button

MARK = "●"
DAMAGED = "?"  # mark after a value that was read from damaged text


def show(table: PublishedTable, passed: set[int]) -> None:
    """Show a table; `passed` holds `id(row)` for each row that matches the filters."""
    st.subheader(f"{table.title}", anchor=False)
    st.text(f"{table.caption[:1].upper()}{table.caption[1:]}.")
    st.caption(
        f"{table.citation}. "
        + (
            f"Scores on the {'training' if table.split == 'train' else table.split} split, in per cent."
            if table.scores
            else "No scores."
        )
    )
    rows = [row for row in table.rows if id(row) in passed]
    if len(rows) < len(table.rows):
        st.caption(f"{len(rows)} of {len(table.rows)} rows match the filters.")
    with st.spinner("Counting the training samples …"):
        ours = published_service.our_results(table)
        untrained = published_service.baselines(table)
    drawn(_frame, table, rows, [*ours, *untrained])
    drawn(_legend, table)
    _beside(table, ours, untrained)
    _notes(table)
    csv_button(
        "Download table with our results (CSV)",
        lambda: [*_records(table, rows), *_own_records(table, ours)],
        table.key,
        f"csv {table.key}",
    )


def _marks(table: PublishedTable) -> dict[str, set[int]]:
    """Return, by column, `id(row)` for each row whose score is the best or within the noise of the best."""
    band = noise.band(table)
    return {
        column: {
            id(row)
            for row, best in zip(table.rows, noise.best(table.rows, column, band.get(column, 0.0)), strict=True)
            if best
        }
        for column in table.scores
    }


def _records(table: PublishedTable, rows: Sequence[PublishedRow]) -> list[dict[str, Any]]:
    records = []
    for row in rows:
        record: dict[str, Any] = {"method": row.method}
        record |= {"setting": row.setting, "data": row.dataset, "network": row.network, "size": row.size}
        for column, value in row.values.items():
            record[column] = value
            if row.spread:
                record[f"± {column}"] = row.spread.get(column)
        records.append(record)
    return records


def _own_records(table: PublishedTable, ours: Sequence[Ours]) -> list[dict[str, Any]]:
    records = []
    for one in ours:
        record: dict[str, Any] = {"method": published_service.method(one), "setting": published_service.setting(one)}
        record |= {"data": published_service.DATASETS.get(one.spec.data.name, one.spec.data.name)}
        record |= {"network": one.spec.model.name, "size": f"{one.spec.model.embedding_dim}D", "ours": one.what}
        for column, (mean, deviation) in one.scores.items():
            record |= {column: round(mean, 4), f"± {column}": None if deviation is None else round(deviation, 4)}
        record["deviates in"] = "; ".join(one.deviations)
        record["runs"] = " ".join(one.runs)
        records.append(record)
    return records


def _in_line(table: PublishedTable, rows: Sequence[PublishedRow], ours: Sequence[Ours]) -> dict[str, Any]:
    """Return columns that show, next to each printed row, our result for the same setting.

    They hold the last score column of the table for which we have any result; {} if there is none.
    """
    beside = [published_service.find_matching(row, ours) for row in rows]
    for score in reversed(table.scores):
        reached = [one.scores.get(score) if one else None for one in beside]
        if any(reached):
            means, deviations = ([pair[i] if pair else None for pair in reached] for i in (0, 1))
            return {f"{score}, ours": means} | ({f"± {score}, ours": deviations} if any(deviations) else {})
    return {}


def _frame(table: PublishedTable, rows: Sequence[PublishedRow], ours: Sequence[Ours]) -> None:
    """Show a sortable table of the printed rows with our results; scores that are best within the noise are bold."""
    marks = _marks(table)
    frame = pd.DataFrame(_records(table, rows)).assign(**_in_line(table, rows, ours))
    frame = frame.drop(columns=[name for name in ("setting", "data", "network", "size") if not frame[name].any()])
    constant = [name for name in ("data", "network", "size") if name in frame and frame[name].nunique() == 1]
    frame = frame.drop(columns=constant)
    styler = frame.style
    for column in frame.columns:
        if pd.api.types.is_numeric_dtype(frame[column]):
            a_score = column in table.scores or column.startswith("±") or column.endswith(", ours")
            digits = "{:.2f}" if a_score else "{:g}"
            styler = styler.format(digits, subset=[column], na_rep="–")
        if column in marks:
            best = [i for i, row in enumerate(rows) if id(row) in marks[column]]
            if best:
                cells = pd.IndexSlice[best, [column]]
                styler = styler.format("{:.2f} " + MARK, subset=cells).set_properties(
                    subset=cells, **{"font-weight": "bold"}
                )
        if doubtful := [i for i, row in enumerate(rows) if column in row.damaged]:
            styler = styler.format("{:.2f} " + DAMAGED, subset=pd.IndexSlice[doubtful, [column]])
    st.dataframe(
        styler,
        hide_index=True,
        key=f"printed {table.key}",
        height=_height(len(rows)),
        alt=f"{table.title}: {table.caption}",
        column_config={
            column: st.column_config.NumberColumn("±", help=column) for column in frame.columns if column[0] == "±"
        },
    )


def _height(rows: int) -> int | Literal["content"]:
    """Return the height of a table, in pixels if it has more than 20 rows, which then scroll."""
    return "content" if rows <= 20 else 560


def _legend(table: PublishedTable) -> None:
    if not table.scores:
        return
    band = noise.band(table)
    printed = any(row.spread for row in table.rows)
    same = len({row.alike for row in table.rows}) > 1
    scope = " among rows of the same data, network and embedding size" if same else ""
    if band:
        each = " or ".join(f"within {width:g} {column} of the highest" for column, width in band.items())
        within = f"Bold marks scores {each}{scope}, and only the highest score where the noise level is unknown."
    elif printed:
        within = f"Bold marks means whose range of one standard deviation overlaps that of the highest{scope}."
    else:
        within = f"Bold marks only the highest score{scope}: without a noise level, ties cannot be determined."
    st.caption(f"**{MARK}** {within}")
    if any(row.damaged for row in table.rows):
        st.caption(f"**{DAMAGED}**: read from damaged text.")
    st.markdown(f":material/blur_on: **Noise.** {noise.words(table)}", help=noise.WHY if band else None)


def _beside(table: PublishedTable, ours: Sequence[Ours], untrained: Sequence[Ours]) -> None:
    st.markdown("##### Our results")
    if not table.protocol:
        st.caption("This table belongs to no protocol: it lists settings or counts, or summarises other tables.")
        return
    protocol = protocols.read(table.protocol)
    st.caption(f"Protocol `{table.protocol}`: {protocol.sentence} Checkpoints are selected by {protocol.selection}.")
    if not ours:
        st.markdown("There is no run under this protocol on these data yet. Start one with:")
        names = {title: name for name, title in published_service.DATASETS.items()}
        data = next((names[title] for title in table.datasets if title in names), protocol.data)
        st.code(f"python -m dmlcore protocol {table.protocol} --data {data}", language="bash")
        menu.link("settings", "Or choose the protocol in New run")
        return
    drawn(_ours, table, ours, untrained)
    _differ(table, ours)


def _ours(table: PublishedTable, ours: Sequence[Ours], untrained: Sequence[Ours]) -> None:
    frame = pd.DataFrame(
        [
            {
                "method": "without training" if one in untrained else published_service.method(one),
                "setting": "" if one in untrained else published_service.setting(one),
                "ours": one.what,
                **{
                    key: value
                    for column, (mean, deviation) in one.scores.items()
                    for key, value in ((column, mean), (f"± {column}", deviation))
                },
                "network": f"{one.spec.model.name}, {one.spec.model.embedding_dim}D",
                "deviates in": len(one.deviations),
            }
            for one in [*untrained, *ours]
        ]
    )
    frame = frame.drop(columns=[c for c in frame.columns if c[0] == "±" and frame[c].isna().all()])
    config: dict[str, Any] = {
        column: st.column_config.NumberColumn("±" if column[0] == "±" else column, format="%.2f", help=column)
        for column in frame.columns
        if column[0] == "±" or column in table.scores
    }
    config["deviates in"] = st.column_config.NumberColumn("deviates in", format="%d settings")
    if not any(one.deviations for one in ours):
        frame = frame.drop(columns=["deviates in"])
    st.dataframe(
        frame,
        hide_index=True,
        key=f"ours {table.key}",
        height=_height(len(frame)),
        column_config=config,
        placeholder="–",
    )


def _differ(table: PublishedTable, ours: Sequence[Ours]) -> None:
    """Show how our results deviate from the published source and from the protocol."""
    if study := published_service.STUDIES.get(table.key):
        _seeds(table, ours)
        about = studies.read(study)
        with st.expander(f"Differences of the study {study} from the source", icon=":material/difference:"):
            st.markdown("\n".join(f"- {remark}" for remark in about.remarks))
            menu.link("studies", about.title, {"study": study})
    deviating = {one.deviations for one in ours if one.deviations}
    if deviating:
        st.warning(
            "These runs deviate from the protocol, so their scores are not comparable with the printed ones.",
            icon=":material/difference:",
        )
        with st.expander("Deviations", expanded=False):
            for one in ours:
                if one.deviations in deviating:
                    deviating.discard(one.deviations)
                    st.text(f"{published_service.method(one)}, {one.what}")
                    st.text("\n".join(f"• {line}" for line in one.deviations))


def _seeds(table: PublishedTable, ours: Sequence[Ours]) -> None:
    """Show the spread of our scores over seeds and the range of the printed scores."""
    column = "MAP@R"
    spreads = [one.scores[column][1] for one in ours if column in one.scores]
    known = [spread for spread in spreads if spread is not None]
    trained = [value for row in table.rows if row.loss and (value := row.score(column)) is not None]
    if known and trained:
        st.caption(
            f"Each seed draws new classes and a new initial network. The standard deviation of our {column} over seeds "
            f"is {min(known):.1f} to {max(known):.1f} points. The published {column} of trained models is "
            f"{min(trained):.2f} to {max(trained):.2f} %."
        )


def _notes(table: PublishedTable) -> None:
    errata = table.errata()
    if not table.notes and not errata:
        return
    st.markdown("##### Notes and errata")
    st.text("\n".join(f"• {note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}" for note in table.notes))
    for erratum in errata:
        menu.link("errata", f"Erratum {erratum.number}: {erratum.title}", {"erratum": str(erratum.number)})
