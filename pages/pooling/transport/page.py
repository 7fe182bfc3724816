"""Transport: which pixels of a painted map generalized sum pooling selects, and how its problem is solved."""

from __future__ import annotations

import streamlit as st

from pages.pooling.transport import service
from pages.pooling.transport.state import TransportState, options
from pages.shared.widgets import menu, misread_link
from pages.shared.widgets.component import KEPT, mount
from pages.shared.words.formulas import statements


@st.fragment
def canvas() -> None:
    """The map of the link, to paint, with everything that follows from it."""
    shown = misread_link.opened(TransportState)
    offered = options() | {"table": service.TABLE, "kept": KEPT}
    mount("pooling/transport", shown, service.answer, key="transport", options=offered)


def explain() -> None:
    """The problem, its exact solution, and the meaning of each symbol."""
    st.subheader("The problem and its exact solution", anchor=False)
    st.latex(
        statements(
            r"\min_{\pi,\rho\ge 0}\;\sum_{ij} c_{ij}\,\pi_{ij}+\tfrac{1}{\varepsilon}\Big(\sum_{ij}\pi_{ij}\log\pi_{ij}"
            r"+\sum_j\rho_j\log\rho_j\Big)\quad\text{with}\ \rho_j+\sum_i\pi_{ij}=\tfrac1n,\quad\sum_{ij}\pi_{ij}=\mu"
        )
    )
    st.latex(
        statements(
            r"l_j=\log\sum_i e^{-\varepsilon c_{ij}},\qquad s_j=\sigma(a^{*}+l_j),\qquad \frac1n\sum_j s_j=\mu,\qquad "
            r"p_j=\frac{s_j}{n\mu},\qquad g=\sum_j p_j f_j"
        )
    )
    st.markdown(
        "- $f_j$: feature of pixel $j$ of $n = 100$, a mixture of red, green background and blue that sums to 1; "
        "$\\omega_i$: prototype $i$; $c_{ij} = \\lVert \\omega_i - f_j\\rVert$, the distance (all these vectors have "
        "length at most 1, so that projecting them on the unit ball changes nothing).\n"
        "- $\\pi_{ij}$: the plan, mass that goes from pixel $j$ to prototype $i$; $\\rho_j$: mass left out; "
        "$\\mu$: share of the mass to transport; $z_i = \\frac1\\mu\\sum_j\\pi_{ij}$: share of it that prototype $i$ "
        "gets.\n"
        "- $\\varepsilon$: inverse temperature. Towards 0 every weight becomes $1/n$, average pooling; towards "
        "infinity the problem becomes the linear programme, which takes the nearest pixels until $\\mu$ is used up.\n"
        "- $l_j$: closeness of pixel $j$ to the prototypes, a soft maximum of $-\\varepsilon c_{ij}$; $s_j$: its gate, "
        "$\\sigma$ the logistic function; $a^{*}$: the one bias that makes the mean gate $\\mu$, found by Newton's "
        "method; $p_j$: weight of the pixel; $g$: the pooled vector.\n"
        "- The published iteration sweeps towards the same $a^{*}$. One sweep shrinks a small error by "
        "$r = 1 - k/\\mu$ with $k = \\frac1n\\sum_j s_j(1-s_j)$: at least $\\mu$, and close to 1 when gates are hard."
    )
    st.caption(
        "Informative: less than half background. Source: Gürbüz 2022, chapter 5, Fig. 5.2; the solution as a gated "
        "soft-min, its Newton solver and the rate r are derived from it and checked against the published iteration."
    )


menu.views("transport", "Transport: a gate for what is near")
st.markdown(
    "**Paint the map or move the gate**: generalized sum pooling (GSP) lets a share μ of the map's mass pass, the "
    "pixels nearest to its prototypes; the others stay out of the pooled vector."
)
with st.container(key="figure-transport"):
    canvas()
explain()
