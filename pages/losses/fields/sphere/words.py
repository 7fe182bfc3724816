"""Sentences on the effect of normalisation on a loss, with computed values."""

from __future__ import annotations

import math
import re

from dmlcore import losses
from dmlcore.geometry.extremes import Extreme
from dmlcore.loss_analysis.normalised import Normalised, normalisation
from pages.losses.fields.sphere.state import SphereScene

TINY = 1e-12  # residuals below this value are treated as rounding errors


def named(title: str) -> str:
    """Return the title of a loss as part of a sentence: "the distance-sensitive loss (METU)"."""
    name, remark = re.fullmatch(r"([^,(]*?)((?:,| \().*)?", title).groups("")  # type: ignore[union-attr]
    # the title starts with an ordinary word such as Angular, not with a name such as FaceNet or N-pairs
    if re.match(r"[A-Z][a-z]+\b", name):
        name = name[0].lower() + name[1:]
    return f"the {name} loss{remark}"


def statement(loss: losses.TripletLoss, share: Normalised) -> list[str]:
    """Return sentences, as Markdown, on the effects that normalised embeddings have on a loss."""
    lines = [_residual(share)]
    lines.append(
        f"**Removed:** {share.radial_share:.0%} of the squared forces is radial (mean over random triplets in 3-D). "
        "This part only changes norms, so normalisation removes it."
    )
    if share.identity:
        lines.append(
            f"**Form on the sphere:** $E_{{\\mathrm{{core}}}} = {share.identity.text}$ "
            f"(largest deviation {share.identity.deviation:.0e} over 1024 random triplets)."
        )
    without = ", without its margin" if loss.formula.margin else ""
    lines.append(
        f"**Range of the loss before clamping{without}:** from {_extreme(share.least)} to {_extreme(share.greatest)}. "
        "The range is the same in every dimension from 3 on, because three vectors span at most three dimensions."
    )
    lines.append(_lower_clamp(loss, share))
    if math.isfinite(loss.m2):
        lines.append(_upper_clamp(loss, share))
    return lines


def _residual(residuals: Normalised) -> str:
    if residuals.residual < TINY:
        return f"**Residual:** none; all forces are along the edges (up to {residuals.residual:.0e})."
    return (
        f"**Residual:** forces along no edge reach {residuals.residual:.2f} of a triplet's total force. On the sphere "
        f"they vanish (at most {residuals.residual_tangential:.0e} remains), because they are radial."
    )


def _lower_clamp(loss: losses.TripletLoss, residuals: Normalised) -> str:
    if residuals.margin_off is None:
        always = "never reaches 0, so every triplet is always active" if residuals.clamp_is_off else "reaches 0"
        return f"**Lower clamp:** this loss has no margin; it {always} (minimum {residuals.least.value:.4g})."
    name = "m_1" if residuals.margin_name == "m1" else "m"
    if math.isinf(residuals.margin_off):
        return (
            "**Lower clamp:** no margin disables it: the loss before clamping decreases without bound as two points "
            "approach each other, and the hardest negatives are dropped."
        )
    given = float(loss.hyper[residuals.margin_name or "m"])
    verdict = (
        "is not below this value: no triplet is ever satisfied, so the loss never stops"
        if given >= residuals.margin_off
        else "is below this value: far triplets can still be satisfied"
    )
    return (
        f"**Lower clamp:** never active if ${name}$ is at least ${residuals.margin_off:.5g}$. "
        f"The current ${name} = {given:.4g}$ {verdict}."
    )


def _upper_clamp(loss: losses.TripletLoss, residuals: Normalised) -> str:
    if math.isinf(residuals.greatest.value):
        return (
            f"**Upper clamp:** $m_2 = {loss.m2:.4g}$ always drops triplets, because the loss before clamping grows "
            "without bound."
        )
    reached = residuals.greatest.value + loss.margin
    does = "drops the hardest triplets" if reached >= loss.m2 else "is never reached"
    return f"**Upper clamp:** $m_2 = {loss.m2:.4g}$ {does}: before this clamp the loss is at most {reached:.4g}."


def _extreme(extreme: Extreme) -> str:
    if math.isinf(extreme.value):
        return f"{_number(extreme.value)} (limit as two points coincide)"
    ap, an, pn = (math.degrees(x) for x in extreme.angles)
    return f"{_number(extreme.value)} (at A–P {ap:.4g}°, A–N {an:.4g}°, P–N {pn:.4g}°)"


def _number(x: float) -> str:
    return ("∞" if x > 0 else "−∞") if math.isinf(x) else f"{x:.4g}".replace("-", "−")


def row(scene: SphereScene, name: str) -> dict[str, str]:
    """Return the table row of one loss by column title; the loss of the scene is bold and keeps its parameters."""
    loss = scene.module() if name == scene.loss else losses.create(name)
    residuals = normalisation(loss)
    mark = "**" if name == scene.loss else ""
    share = "none" if residuals.residual < TINY else f"{residuals.residual:.2f} → {residuals.residual_tangential:.0e}"
    margin = (
        "no margin (always active)"
        if residuals.margin_off is None
        else "no margin disables it"
        if math.isinf(residuals.margin_off)
        else f"{residuals.margin_name} = {_number(residuals.margin_off)}"
    )
    return {
        "Loss": f"{mark}{loss.formula.title}{mark}",
        "Residual: without → with normalisation": share,
        "Removed radial share": f"{residuals.radial_share:.0%}",
        "Range before clamping, without added margin": (
            f"{_number(residuals.least.value)} …\u00a0{_number(residuals.greatest.value)}"
        ),
        "Form on the sphere": f"${residuals.identity.text}$" if residuals.identity else "",
        "Lower clamp off from": margin,
    }
