"""Claims page: what the sources report, and whether our studies reproduce it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import streamlit as st

from dmlcore.experiments import source_claims
from dmlcore.experiments.source_claims import VERDICTS, ClaimRow
from dmlcore.spec import SpecError
from pages.library.claims import markup
from pages.shared.state.cache import derived
from pages.shared.widgets.drawn import drawn
from pages.shared.words import glossary
from pages.shared.words import sentences as words


def _table(_sources: Sequence[object]) -> list[ClaimRow]:
    return source_claims.table()


def _filter(rows: Sequence[ClaimRow]) -> list[ClaimRow]:
    """Show the filters and return the rows that match them."""
    sources = list(dict.fromkeys(row.claim.source for row in rows))
    source = st.pills("Source", sources, key="source", bind="query-params")
    verdicts = [verdict for verdict in VERDICTS if any(row.verdict == verdict for row in rows)]
    verdict = st.pills("Verdict", verdicts, key="verdict", bind="query-params")
    return [row for row in rows if source in (None, row.claim.source) and verdict in (None, row.verdict)]


def _draw(rows: Sequence[ClaimRow]) -> None:
    for source, of_source in groupby(rows, lambda row: row.claim.source):
        st.subheader(source, anchor=False)
        st.html(markup.table(list(of_source)))


st.title("Claims", anchor=False)
try:
    with st.spinner("Reading the results of all studies"):
        rows = derived(_table, source_claims.results_of_claims())
except SpecError as error:
    st.error("The claims cannot be read.")
    st.text(words.plain(error))
    st.stop()
st.markdown(
    f"{source_claims.summary(rows)} "
    "Each verdict follows from a contrast of a study at laptop size; scores are in percent.",
    help=glossary.explain("significant difference", "MAP@R"),
)
st.caption(
    "**Reproduced**: significant in the claimed direction. **Not reproduced**: significant in the opposite direction, "
    "or refuted by an exact computation. **Cannot be decided here**: the reason follows the numbers. "
    "Runs include all trials for a claim, chosen or not."
)
matching = _filter(rows)
if matching:
    drawn(_draw, matching)
else:
    st.info("No claim matches these filters. Clear one of them.", icon=":material/search_off:")
