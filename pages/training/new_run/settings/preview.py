"""Preview of a spec: its data, warnings, loss and pooling with their formulas, and all settings as text."""

from __future__ import annotations

import math
from html import escape

import streamlit as st

from dmlcore import data, losses, pooling
from dmlcore.monitoring import comparability
from dmlcore.spec import RunSpec
from pages.shared.widgets.spec_form.preflight import Summary
from pages.shared.words import sentences as words

FEW = 20  # with fewer training classes, the page warns that the network may not generalise to unseen classes
STORY = {
    "own": "It has its own training, validation and test splits.",
    "samples": "Tested on new samples of the training classes, which is easier.",
    "classes": "Tested on unseen classes, the standard zero-shot retrieval test.",
}
SYMBOLS = {  # of losses of a batch, except settings, which have labels in the sidebar
    "P_i": "positives of sample $i$ in the batch",
    "N_i": "negatives of sample $i$ in the batch",
    "s_{ij}": "similarity of samples $i$ and $j$",
}
FEW_CLASSES = (
    "{classes} training classes are too few to generalise: validation on known classes rises, while the test on unseen "
    "ones may fall below the untrained network."
)


def show(spec: RunSpec, summary: Summary | None, *, linked: bool, ready: bool) -> None:
    """Show loss, data, warnings, pooling and the settings as text.

    Args:
        spec: The settings.
        summary: Sizes and examples of the data set; None if it cannot be read.
        linked: True if the URL of the page contains these settings.
        ready: True if a run can be trained with these settings.
    """
    if ready:
        _describe_loss(spec)
        if spec.loss.tcm:
            _describe_threshold_consistency(spec)
        if spec.projection.pool:
            _describe_projections(spec)
        if spec.conditioning.neighbours:
            _describe_conditioning(spec)
    _describe_data(spec, summary)
    _lint(spec, summary)
    if ready and data.describe(spec.data.name).kind != "vectors":
        _describe_pooling(spec)
    if not linked:
        st.caption("These settings do not fit into a link. Download them as text instead.")
    with st.expander("All settings as text (TOML)", icon=":material/description:"):
        st.code(spec.to_toml(), language="toml")
        st.download_button(
            "Download", spec.to_toml(), "spec.toml", "application/toml", key="download", icon=":material/download:"
        )


def _lint(spec: RunSpec, summary: Summary | None) -> None:
    """Show warnings about weaknesses of the spec and about deviations from the protocol that it names."""
    training = summary and summary.splits["train"][0] + summary.splits["validation"][0]
    warnings = comparability.lint_spec(spec, training or None)
    # omit notes, because they would repeat what the description of the data set says about known classes
    if spec.schedule.patience == 0 and not spec.protocol:
        warnings = [warning for warning in warnings if warning.severity != "note"]
    if warnings:
        with st.expander(f"Worth knowing before you compare: {len(warnings)}", icon=":material/rule:", expanded=True):
            st.text("\n".join(f"• {words.plain(warning.sentence)}" for warning in warnings))


def _describe_data(spec: RunSpec, summary: Summary | None) -> None:
    info = data.describe(spec.data.name)
    st.subheader(info.title, anchor=False)
    st.markdown(f"{info.sentence} {STORY[spec.data.split or info.split]}")
    if summary is None:
        return
    learned = summary.splits["train"][1]
    if spec.data.split == "classes" and learned < FEW:
        st.info(FEW_CLASSES.format(classes=learned), icon=":material/school:")
    for note in summary.notes:
        st.caption(note)
    if summary.examples:
        st.html(_strip(summary.examples))


def _strip(examples: tuple[tuple[str, str], ...]) -> str:
    """Return HTML of a wrapping row of images, each with its class below."""
    cells = [
        f'<figure style="margin:0;width:72px;text-align:center"><img src="{address}" alt="{escape(name)}" '
        'style="width:64px;height:64px;object-fit:cover;image-rendering:pixelated;border-radius:4px">'
        f'<figcaption style="font-size:0.75rem;overflow:hidden;text-overflow:ellipsis;white-space:nowrap">'
        f"<bdi>{escape(name)}</bdi></figcaption></figure>"
        for name, address in examples
    ]
    return f'<div style="display:flex;flex-wrap:wrap;gap:6px">{"".join(cells)}</div>'


def _describe_loss(spec: RunSpec) -> None:
    formula = losses.describe(spec.loss.name)
    st.subheader(f"{formula.title} loss", anchor=False)
    st.latex(f"E = {formula.energy_latex}")
    st.markdown(formula.sentence)
    if spec.loss.name not in losses.names():
        symbols = "; ".join(f"${name}$: {meaning}" for name, meaning in SYMBOLS.items() if name in formula.energy_latex)
        st.caption(f"{formula.source}. {symbols}{'.' * bool(symbols)}")
        return
    upper = losses.create(spec.loss.name, **spec.loss.parameters).m2
    window = "below at 0" if upper == math.inf else f"to [0, {upper:.4g}], with zero gradient outside"
    value = {
        "mean_raw": "the mean of $E$, without clamps",
        "entangled": r"the mean over pairs of $\log(1+\sum_n e^E)$",
    }.get(spec.loss.reduction, f"$E$ clamped {window}")
    st.caption(f"{formula.source}. $a$ is the anchor, $p$ its positive, $n$ its negative; the loss is {value}.")


def _describe_threshold_consistency(spec: RunSpec) -> None:
    chosen, term = spec.loss, losses.describe("threshold_consistent_margin")
    st.subheader(f"{term.title}: one threshold for all classes", anchor=False)
    st.latex(rf"L+\lambda\,\Bigl({term.latex}\Bigr)")
    st.markdown(term.sentence)
    st.caption(
        f"{term.source}. $\\lambda$ = {chosen.tcm:g}, $m_+$ = {chosen.tcm_m_pos:g}, $m_-$ = {chosen.tcm_m_neg:g}; $L$ "
        "is the loss above, and $s$ the cosine similarity of a pair of the batch."
    )


def _describe_projections(spec: RunSpec) -> None:
    chosen, per_class = spec.projection, losses.describe(spec.loss.name).resolve(spec.loss.parameters)["per_class"]
    st.subheader("Projections: chance-constrained programming", anchor=False)
    st.latex(r"\theta_{k+1}=\arg\min_{\theta,\,w}\ \tfrac{\lambda}{2}\lVert\theta-\theta_k\rVert^2+E(\theta, w)")
    farthest = f"that are farthest from the previous proxies, among {chosen.pool} candidates"
    how = "drawn at random" if chosen.pool == per_class else farthest
    st.markdown(
        f"A projection ends after {chosen.patience} validations without improvement. The next one keeps the network "
        f"near its best weights $\\theta_k$ and sets the {per_class} proxies $w$ of each class to samples of the class "
        f"{how}."
    )
    st.caption(f"Gürbüz 2022, Ch. 3, Alg. 1. $\\lambda$ = {chosen.weight:g}, except 0 in the first projection.")


def _describe_conditioning(spec: RunSpec) -> None:
    chosen = spec.conditioning
    st.subheader("Neighbours: a conditioned embedding", anchor=False)
    formulas = {
        "lstm": r"g=W\,[\,h\,;\,f(x)\,]+b,\quad h=\mathrm{LSTM}\big(f(x),f(x_1),\dots,f(x_K)\big)",
        "average": r"g=W\,\big[\tfrac1K\textstyle\sum_k f(x_k)\,;\,f(x)\big]+b",
        "concat": r"g=W\,[\,f(x_1);\dots;f(x_K);f(x)\,]+b",
        "mean": r"g=\tfrac1{K+1}\big(f(x)+\textstyle\sum_k f(x_k)\big)",
    }
    st.latex(formulas[chosen.by])
    where = "among the other evaluated samples" if chosen.transductive else "in the training split"
    kind, other = ("transductive", "inductive") if chosen.transductive else ("inductive", "transductive")
    begins = f"After {chosen.after:,} steps of training $f$ alone, " if chosen.after else "From the first step, "
    st.markdown(
        f"{begins}each sample $x$ is embedded together with its {chosen.neighbours} nearest neighbours. Evaluated "
        f"samples find their neighbours {where}, so the scores are **{kind}**; {other} scores are also reported."
    )
    st.caption("Can 2018, Ch. 4: an LSTM over 16 neighbours, which test samples find in the test split.")


def _describe_pooling(spec: RunSpec) -> None:
    info = pooling.describe(spec.pooling.name)
    st.subheader(f"{info.title} pooling", anchor=False)
    st.latex(info.latex)
    share = spec.pooling.zero_shot
    mixed = f" The zero-shot prediction loss makes up {share:g} of the total loss." if share else ""
    st.caption(f"{info.source}. $f_j$ are the local features, one per position.{mixed}")
