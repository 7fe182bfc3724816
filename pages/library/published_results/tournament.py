"""Tournament view: losses compared over many published experiments, with ties within the noise."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dmlcore.figures import published as figures
from dmlcore.published.tournament import COMPETITIONS, Competition, Tournament, compete, printed_ranks, scores
from pages.shared.widgets.chart import chart
from pages.shared.widgets.linked_box import csv_button, linked

PARAMETER = "competition"  # URL parameter


def show() -> None:
    """Show the controls for competition and noise band, the standings, and the duels between methods."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        key = linked("Competition", list(COMPETITIONS), PARAMETER, lambda key: COMPETITIONS[key].title, 470)
        competition = COMPETITIONS[key]
        band = st.slider(
            f"Count differences up to … {competition.column} as ties",
            0.0,
            2.0,
            round(competition.band, 2),
            0.01,
            key=f"band {key}",
            width=360,
            help="0: any difference decides, as in the source",
        )
    by_experiment = scores(competition)
    draw(key, competition, by_experiment, band)


def draw(key: str, competition: Competition, by_experiment: dict[str, dict[str, float]], band: float) -> None:
    """Show the standings with and without the noise band, and the duels between methods.

    `by_experiment` holds the score of each method by experiment.
    """
    with_band, without = compete(by_experiment, band), compete(by_experiment)
    st.markdown(
        f"{competition.words} In each of the {len(by_experiment)} experiments all methods are compared by "
        f"{competition.column}. Rank = 1 + methods ahead + half of the tied methods."
    )
    ground = (
        f"The default band, {competition.band:.2f}, is the largest standard deviation of {competition.column} in the "
        f"source (Table {competition.spread.partition('-')[2]})."
        if competition.spread
        else "The source reports no noise level, so the default band is 0 and a lead may be chance."
    )
    st.markdown(f":material/blur_on: **Noise.** {ground}")
    records = _records(key, with_band, without)
    left, right = st.columns([5, 6], gap="large")
    with left:
        frame = pd.DataFrame(records)
        config = {c: st.column_config.NumberColumn(c, format="%.2f") for c in frame.columns if "rank" in c}
        st.dataframe(frame, hide_index=True, key=f"standings {key}", column_config=config, height="content")
        st.caption(_moved(with_band, without, band))
        csv_button("Download standings (CSV)", lambda: records, f"tournament-{key}", f"csv {key}")
    with right:
        names = [standing.name for standing in with_band.standings]
        words = "; ".join(f"{s.name}: {s.wins} won, {s.ties} tied, {s.defeats} lost" for s in with_band.standings)
        chart(f"duels {key} {band}", figures.duels(names, with_band.duels), f"Duels. {words}")
        st.caption("Row against column: duels won, + tied. Blue: row ahead; vermillion: row behind.")
    with st.expander(f"The {len(by_experiment)} experiments", icon=":material/table_rows:"):
        table = [{"experiment": name, **each} for name, each in by_experiment.items()]
        st.dataframe(table, hide_index=True, key=f"experiments {key}")


def _records(key: str, with_band: Tournament, without: Tournament) -> list[dict[str, str | float | int]]:
    plain = {standing.name: standing for standing in without.standings}
    printed = printed_ranks() if key == "psomas-cub" else {}
    records: list[dict[str, str | float | int]] = []
    for standing in with_band.standings:
        record: dict[str, str | float | int] = {"method": standing.name, "mean rank": round(standing.mean_rank, 4)}
        record |= {"won": standing.wins, "tied": standing.ties, "lost": standing.defeats}
        record["rank without band"] = round(plain[standing.name].mean_rank, 4)
        if printed:
            record["printed rank"] = printed[standing.name]
        records.append(record)
    return records


def _moved(with_band: Tournament, without: Tournament, band: float) -> str:
    """Return a sentence on the share of tied duels and on the methods whose rank the noise band changes."""
    before = [standing.name for standing in without.standings]
    after = [standing.name for standing in with_band.standings]
    ties = sum(standing.ties for standing in with_band.standings) // 2
    duels = ties + sum(standing.wins for standing in with_band.standings)
    share = f"{ties} of {duels} duels are ties." if band else "Without a band any difference decides."
    if not band:
        return share
    places = [name for name in after if after.index(name) != before.index(name)]
    order = f" Places change for {', '.join(places)}." if places else " No place changes."
    return share + order
