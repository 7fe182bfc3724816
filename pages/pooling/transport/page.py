"""Transport page: the pixels that generalized sum pooling selects in a painted map, and the transport problem behind
it.
"""

from __future__ import annotations

import streamlit as st

from pages.pooling.transport import service
from pages.pooling.transport.state import TransportState, options
from pages.shared.widgets import menu
from pages.shared.widgets.component import KEPT
from pages.shared.widgets.live_component import mount, opened
from pages.shared.words import glossary
from pages.shared.words.formulas import statements


@st.fragment
def canvas() -> None:
    """Mount the component that shows the map in the URL, which the user can paint, and the results computed for it."""
    shown = opened(TransportState)
    offered = options() | {"table": service.TABLE, "kept": KEPT}
    mount("pooling/transport", shown, service.answer, key="transport", options=offered)


def explain() -> None:
    """Show the transport problem, its exact solution, and the meaning of each symbol."""
    st.markdown("**The problem and its exact solution**")
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
        "- $f_j$: feature of pixel $j$ of $n = 100$, a mixture of red, green background and blue with shares that sum "
        "to 1; $\\omega_i$: prototype $i$; $c_{ij} = \\lVert \\omega_i - f_j\\rVert$: their distance. (All these "
        "vectors have length at most 1, so projecting them on the unit ball changes nothing.)\n"
        "- $\\pi_{ij}$: the plan, the mass transported from pixel $j$ to prototype $i$; $\\rho_j$: the mass left out; "
        "$\\mu$: the share of the mass to transport; $z_i = \\frac1\\mu\\sum_j\\pi_{ij}$: the share of the "
        "transported mass that prototype $i$ receives.\n"
        "- $\\varepsilon$: inverse temperature. As it approaches 0, every weight approaches $1/n$ (average pooling). "
        "As it grows, the problem approaches the linear programme, which takes the nearest pixels until $\\mu$ is "
        "used up.\n"
        "- $l_j$: closeness of pixel $j$ to the prototypes, a soft maximum of $-\\varepsilon c_{ij}$; $s_j$: its gate; "
        "$\\sigma$: the logistic function; $a^{*}$: the unique bias for which the mean gate is $\\mu$, found by "
        "Newton's method; $p_j$: weight of the pixel; $g$: the pooled vector.\n"
        "- The published iteration converges to the same $a^{*}$. One sweep multiplies a small error by "
        "$r = 1 - k/\\mu$ with $k = \\frac1n\\sum_j s_j(1-s_j)$; $r$ is at least $\\mu$ and close to 1 for hard gates."
    )
    st.caption(
        "A pixel is informative if less than half of it is background. Source: Gürbüz 2022, chapter 5, Fig. 5.2. The "
        "gated soft-min, its Newton solver and the rate r are derived from it and checked against the published "
        "iteration."
    )


menu.views("transport", "Transport: a gate that selects features")
st.markdown(
    "**Paint the map or move the gate.** Generalized sum pooling (GSP) pools the share μ of the map that is nearest to "
    "its prototypes and leaves the rest out.",
    help=glossary.explain("GAP, GSP", "prototype"),
)
with st.container(key="figure-transport"):
    canvas()
with st.expander("Method", icon=":material/function:"):
    explain()
