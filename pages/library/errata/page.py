"""Errata page: errors in five sources, each checked by computation, and a reference for every loss."""

from __future__ import annotations

import re
from functools import cache
from typing import get_args
from urllib.parse import parse_qsl

import streamlit as st

from dmlcore import losses
from dmlcore.figures.palette import INK
from dmlcore.published import checks
from dmlcore.published.errata import FOUND_RIGHT, METHODS, Erratum, Kind, errata, erratum, search
from dmlcore.published.printed_formulas import COUNTEREXAMPLES, Counterexample
from dmlcore.published.table_reader import sources
from pages.library.errata import outcomes as outcomes_view
from pages.library.errata import reference as reference_view
from pages.library.errata import service as errata_service
from pages.library.errata.state import FIRST, Example
from pages.library.errata.words import literal, marked, snippet, why_no_plot
from pages.shared.server import static_files
from pages.shared.widgets import menu
from pages.shared.widgets.live_component import explained, mount

CHOSEN, HALF, SOURCE = "truth_erratum", "truth_half", "truth_source"
ERRATA, REFERENCE = "Errata", "Loss reference"
KINDS: dict[Kind, str] = {"gradient": "gradients", "formula": "formulas", "number": "numbers", "text": "text"}
# text colours of the printed and the correct version by theme; contrast with the background at least 4.5 to 1
DIFFERENCE = {
    theme: (INK[theme == "dark"]["printedText"], INK[theme == "dark"]["correctedText"]) for theme in ("light", "dark")
}

# errata with a figure: a triplet that can be dragged, or a curve over one variable
SEEN = frozenset({*COUNTEREXAMPLES, *checks.CURVES})
S = "S is the triplet a = (0, 0), p = (1, 0), n = (0, 2)."

# The list of errata is to the left of the selected erratum and as high as it; on a narrow page it is above and shorter.
STYLE = """<style>
.st-key-truth_list [role=radiogroup] { gap: .55rem; }
.st-key-truth_scroll { overflow-y: auto; overflow-x: hidden; }
.st-key-truth_title { flex-wrap: nowrap; }
.st-key-truth_title > :first-child { flex: 1 1 0; min-width: 0; }
.st-key-truth_sides > * { flex: 1 1 300px; }
@media (min-width: 800px) {
  .st-key-truth_row { flex-wrap: nowrap; }
  .st-key-truth_row > :first-child { flex: 0 0 clamp(260px, 30vw, 350px); }
  .st-key-truth_row > :last-child { flex: 0 1 880px; min-width: 0; }
  .st-key-truth_list > :last-child { flex: 1 0 560px; min-height: 0; }
}
@media (max-width: 799px) { .st-key-truth_scroll { max-height: 230px; } }
</style>"""
# Scrolls the list of errata to the selected one without scrolling the page.
SCROLL = f"<script>{static_files.inline('library/errata')}</script>"


def page() -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Errata", anchor=False, width="content")
        half = _half()
    _show(half)


def _half() -> str:
    """Show the control for choosing errata or loss reference, initialised from the URL; return ERRATA or REFERENCE."""
    query = st.query_params
    opened = REFERENCE if "loss" in query and "erratum" not in query else ERRATA
    return st.segmented_control(
        "Part", [ERRATA, REFERENCE], default=opened, required=True, key=HALF, label_visibility="collapsed"
    )


def _show(half: str) -> None:
    """Show the errata if `half` is ERRATA, or the loss reference if it is REFERENCE."""
    st.html(STYLE)
    if half == REFERENCE:
        reference_view.show(to_erratum)
    else:
        _errata()


# ---- the list


@st.fragment
def _errata() -> None:
    st.markdown(
        f"{len(errata())} errors in {len(_with_errata())} sources, each checked by computing both versions. "
        f"{len(COUNTEREXAMPLES)} have a triplet to drag, with the :orange[printed] and the :green[true] gradient; "
        f"{len(checks.CURVES)} have a curve."
    )
    row = st.container(horizontal=True, gap="large", key="truth_row")
    with row.container(width=350, height="stretch", key="truth_list"):
        chosen = _list()
    with row.container(width=880):
        if chosen is None:
            st.info("No erratum matches these filters. Clear one of them.", icon=":material/search_off:")
        else:
            st.html(f"<i hidden>{chosen}</i>{SCROLL}", unsafe_allow_javascript=True)
            _detail(erratum(chosen))
    with st.expander("Checked and found correct", icon=":material/check:"):
        for letter, lines in FOUND_RIGHT.items():
            st.markdown("\n".join([f"{sources()[letter].title}:", "", *(f"- {line}" for line in lines)]))
    st.caption(f"How it was checked: {'; '.join(METHODS.values())}.")


def _list() -> int | None:
    text = st.text_input("Search", key="truth_text", placeholder="words, a loss, an equation", icon=":material/search:")
    source = _source()
    kind = st.pills("Kind", get_args(Kind), format_func=KINDS.__getitem__, key="truth_kind")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        named = [name for name in losses.names() if any(name in e.losses for e in errata())]
        loss = st.selectbox(
            "Loss",
            ["", *named],
            format_func=lambda n: losses.formula(n).title if n else "any",
            key="truth_loss",
            width=190,
        )
        seen = st.toggle("with figure", key="truth_seen", help="Only errata with a counter-example to drag or a curve")
    matching = search(kind or "", loss, text[:200], SEEN if seen else None, source or "")
    st.caption(f"{len(matching)} of {len(errata())}")
    if not matching:
        return None
    numbers = [e.number for e in matching]
    asked = _asked()
    at = asked if asked in numbers else numbers[0]
    if st.session_state.get(CHOSEN) != at:
        st.session_state[CHOSEN] = at
    with st.container(key="truth_scroll"):
        return st.radio(
            "Erratum",
            numbers,
            format_func=lambda number: f"**{number}** {erratum(number).title}",
            captions=[
                " · ".join((sources()[e.source].title, e.where, *["with figure"] * (e.number in SEEN)))
                for e in matching
            ],
            key=CHOSEN,
            on_change=_follow,
            label_visibility="collapsed",
        )


@cache
def _with_errata() -> dict[str, str]:
    """Return the titles of the sources that have errata, keyed by the letter that identifies the source."""
    return {letter: sources()[letter].title for letter in dict.fromkeys(e.source for e in errata())}


def _source() -> str | None:
    """Show the control for choosing a source, initialised from the URL; return its letter, or None without a choice."""
    if SOURCE not in st.session_state and st.query_params.get("source") in _with_errata():
        st.session_state[SOURCE] = st.query_params["source"]
    return st.pills(
        "Source", list(_with_errata()), format_func=_with_errata().__getitem__, key=SOURCE, on_change=_of_source
    )


def _of_source() -> None:
    """Write the selected source to the URL, and remove the erratum from the URL if it belongs to another source."""
    source = st.session_state[SOURCE]
    if source and erratum(_asked()).source != source:
        st.query_params.from_dict({"source": source})
    elif source:
        st.query_params["source"] = source
    else:
        st.query_params.pop("source", None)


def _asked() -> int:
    """Return the number of the erratum in the URL; FIRST if it is missing or invalid."""
    text = st.query_params.get("erratum", "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else FIRST
    return number if 0 < number <= len(errata()) else FIRST


def _follow() -> None:
    _go(st.session_state[CHOSEN])


def _go(number: int) -> None:
    source = st.session_state.get(SOURCE)
    st.query_params.from_dict({"erratum": str(number)} | ({"source": source} if source else {}))


# ---- one erratum


def _detail(e: Erratum) -> None:
    with st.container(horizontal=True, key="truth_title"):
        st.subheader(f"{e.number}. {e.title}", anchor=False)
        last = len(errata())
        st.button("", icon=":material/arrow_back:", help="Previous erratum", key="truth_back", on_click=_go,
                  args=(e.number - 1 if e.number > 1 else last,))  # fmt: skip
        st.button("", icon=":material/arrow_forward:", help="Next erratum", key="truth_next", on_click=_go,
                  args=(e.number % last + 1,))  # fmt: skip
    place = (sources()[e.source].title, e.where, KINDS[e.kind])
    st.caption(f"{' · '.join(place)} · checked: {', '.join(METHODS[tag] for tag in e.checked)}")
    colours = DIFFERENCE["dark" if st.context.theme.type == "dark" else "light"]
    sides = st.container(horizontal=True, gap="medium", key="truth_sides")
    for name, text, latex, colour, mark in (
        ("Printed", e.printed, e.printed_latex, colours[0], ":orange[✗]"),
        ("True", e.true, e.true_latex, colours[1], ":green[✓]"),
    ):
        with sides.container(border=True, height="stretch"):
            st.markdown(f"{mark} **{name}**")
            if latex:
                st.latex(marked(latex, colour))
            st.markdown(literal(text))
    if e.example:
        on_s = f" {S}" if re.search(r"\bS\b", e.example) else ""
        st.markdown(f"**Counter-example.** {literal(e.example)}{on_s}")
    example = COUNTEREXAMPLES.get(e.number)
    if example:
        _plot(e, example)
    outcomes_view.show(e, asked=_asked() == e.number)
    if e.number not in SEEN:
        st.caption(why_no_plot(e))
    _links(e)


def _plot(e: Erratum, example: Counterexample) -> None:
    mine = _asked() == e.number
    with explained():
        scene = Example.from_query(st.query_params.to_dict() if mine else {}, Example.at(e.number))
    mount(
        "library/errata",
        scene,
        errata_service.answer,
        key=f"truth_plot_{e.number}",
        name="scene",
        default=scene.default().to_json(),
        loss=example.loss,
        sliders=list(example.sliders),
        sides=list(example.sides),
        title=f"erratum-{e.number}",
    )
    with st.expander("The same in Python", icon=":material/code:"):
        st.code(snippet(scene), language="python")


def _links(e: Erratum) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if e.live:
            menu.link(e.live.page, e.live.label, dict(parse_qsl(e.live.query)))
        for name in e.losses:
            title = losses.formula(name).title
            if st.button(
                title,
                icon=":material/menu_book:",
                key=f"truth_to_{name}",
                help="Open its reference",
                on_click=to_reference,
                args=(name,),
                type="tertiary",
            ):
                st.rerun()  # the loss reference is drawn outside this fragment


def to_reference(name: str) -> None:
    """Switch the page to the reference of loss `name`."""
    st.session_state[HALF] = REFERENCE
    st.query_params.from_dict({"loss": name})


def to_erratum(number: int) -> None:
    """Switch the page to erratum `number`."""
    st.session_state[HALF] = ERRATA
    _go(number)


page()
