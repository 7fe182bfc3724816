"""Weights that losses assign to a pair as functions of cosine similarities: as a figure, as arrays and as a script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from dmlcore.figures import field_layers as layers
from dmlcore.figures import strokes
from dmlcore.figures.field_arrays import about_loss, arguments, creation, end_to_end
from dmlcore.figures.fields import save_figure, sheet, values, write_caption
from dmlcore.geometry.boundary import Lines, level_lines
from dmlcore.loss_analysis.pair_weights import RIVALS, Rival, similarities, triplet_weights
from dmlcore.losses import TripletLoss
from dmlcore.typing import Arrays, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["about", "boundary", "draw_weights", "save_figure", "snippet", "weight_arrays"]

NODES = 161
TINY = 1e-12  # treat three vectors as linearly dependent if their Gram determinant is smaller than this
Pair = Literal["ap", "an", "pn"]
By = Literal["S", "d"]
PAIRS: tuple[Pair, ...] = ("ap", "an", "pn")
_NAMES = {"ap": "anchor and positive", "an": "anchor and negative", "pn": "positive and negative"}
_PLACED = {
    "perpendicular": "at a right angle to P, as seen from A",
    "symmetric": "as near to P as to A",
    "fixed": "at a fixed similarity to P",
}


def weight_arrays(
    losses: Sequence[TripletLoss],
    *,
    rival: Rival = "perpendicular",
    pn: float = 0.0,
    at: tuple[float, float] = (0.5, 0.6),
    n: int = NODES,
) -> Arrays:
    """Compute the pair weights dL/dS and dL/dd of each loss over S_ap (columns) and S_an (rows).

    S is the cosine similarity and d the distance of a pair. All arrays are float64 unless stated otherwise.

    Args:
        losses: The losses, numbered k = 1, 2, ... in the names of the arrays.
        rival: Placement of the negative, as in `loss_analysis.pair_weights.similarities`.
        pn: Similarity between positive and negative if `rival` is "fixed".
        at: (S_ap, S_an) of one triplet whose weights are returned in addition.
        n: Nodes along each side.

    Returns:
        Arrays by name. For all losses:
        similarity (n,), the centres of n cells of [-1, 1]; S_pn (n, n); exists (n, n), boolean, True where unit vectors
        with these similarities exist.
        For loss k: dL_dS<k> and dL_dd<k> (3, n, n), the weights of a-p, a-n, p-n; loss<k> and raw<k> (n, n), the loss
        with and without the clamp; outer<k> (K, 2) and inner<k> (K, 2), the concatenated polylines raw = 0 and raw = m2
        as (S_ap, S_an), where triplets exist; outer<k>_sizes and inner<k>_sizes (L,), the number of points of each
        line.
        For the triplet `at`: at (3,) = S_ap, S_an, S_pn; at_exists (), boolean; at_dL_dS<k> and at_dL_dd<k> (3,);
        at_loss<k> (2,) = raw, loss.

    Raises:
        ValueError: If similarities are outside [-1, 1], the rival is unknown or n < 2.
    """
    if n < 2 or not all(-1 <= s <= 1 for s in at):
        raise ValueError(f"n must be at least 2 and similarities in [-1, 1], got n={n}, at={at}")
    axis = (torch.arange(n, dtype=torch.float64) + 0.5) * 2 / n - 1
    s = similarities(axis[None, :], axis[:, None], rival, pn)
    here = torch.tensor(at, dtype=torch.float64)
    there = similarities(here[0], here[1], rival, pn)
    arrays: Arrays = {
        "similarity": axis.numpy(),
        "S_pn": s.pn.numpy(),
        "exists": (s.determinant() >= 0).numpy(),
        "at": torch.stack(tuple(there)).numpy(),
        "at_exists": (there.determinant() >= TINY).numpy(),
    }
    for k, loss in enumerate(losses, start=1):
        for prefix, where in (("", s), ("at_", there)):
            weights = triplet_weights(loss, where)
            for name, shown in ((f"{prefix}dL_dS{k}", weights), (f"{prefix}dL_dd{k}", weights.by_distance(where))):
                arrays[name] = torch.stack([getattr(shown, pair) for pair in PAIRS]).numpy() + 0.0
            if prefix:
                arrays[f"at_loss{k}"] = torch.stack([weights.raw, weights.loss]).numpy()
            else:
                arrays |= {f"raw{k}": weights.raw.numpy(), f"loss{k}": weights.loss.numpy()}
        for name, level in (("outer", 0.0), ("inner", loss.m2)):
            lines = boundary(axis.numpy(), arrays[f"raw{k}"], level, rival, pn)
            arrays |= end_to_end(f"{name}{k}", lines)
    return arrays


def boundary(axis: Floats, raw: Floats, level: float, rival: Rival, pn: float) -> Lines:
    """Return the lines where `raw` (n, n) equals `level` and triplets exist, as polylines of (S_ap, S_an)."""
    lines: Lines = []
    for line in level_lines(axis, axis, raw, level):
        s = similarities(torch.from_numpy(line[:, 0]), torch.from_numpy(line[:, 1]), rival, pn)
        exists = (s.determinant() >= 0).numpy()
        cuts = np.flatnonzero(np.diff(exists)) + 1
        pieces = zip(np.split(line, cuts), np.split(exists, cuts), strict=True)
        lines += [piece for piece, inside in pieces if inside[0] and len(piece) > 1]
    return lines


def about(losses: Sequence[TripletLoss], *, rival: Rival = "perpendicular", pn: float = 0.0) -> dict[str, Any]:
    """Return JSON-serialisable metadata for exported pair weights: the losses and the placement of the negative."""
    return {
        "losses": [about_loss(loss) for loss in losses],
        "rival": rival,
        "pn": pn if rival == "fixed" else None,
        "note": "columns are S_ap, rows S_an; weights of a-p, a-n, p-n; a negative dL/dS attracts; null: not finite",
    }


def common_top(sizes: Floats) -> float:
    """Return the upper limit of the colour scale shared by several maps of pair weights.

    It is the smallest upper limit of any single map, so that every map shows contrast, but at least a tenth of the
    largest. Larger weights saturate.

    Args:
        sizes: Magnitudes of the weights, shape (maps, n, n), 0 where no triplet exists.
    """
    tops = [strokes.colour_top(each, each > 0) for each in sizes if (each > 0).any()] or [1.0]
    return max(min(tops), max(tops) / 10)


def draw_weights(
    losses: Sequence[TripletLoss],
    *,
    weight: Pair = "an",
    by: By = "S",
    signed: bool = True,
    rival: Rival = "perpendicular",
    pn: float = 0.0,
    at: tuple[float, float] = (0.5, 0.6),
    n: int = NODES,
    dark: bool = False,
    size: float = 4.0,
) -> Figure:
    """Draw one map of dL/dS or dL/dd of a pair per loss, on a common colour scale, ready for `save_figure`.

    Lines show loss = 0 (solid) and the upper clamp (dashed). No triplet exists in hatched areas. The cross marks the
    triplet `at`, whose weights the titles state.

    Args:
        losses: The losses.
        weight: The pair: "ap", "an" or "pn".
        by: "S" for derivatives with respect to similarity, "d" with respect to distance.
        signed: Distinguish attraction and repulsion by colour instead of showing the magnitude.
        rival: Placement of the negative: "perpendicular", "symmetric" or "fixed".
        pn: Similarity between positive and negative if `rival` is "fixed".
        at: (S_ap, S_an) of the cross.
        n: Nodes along each side.
        dark: Use the colours of the dark theme.
        size: Width of a map in inches.

    Raises:
        ValueError: If weight, by or rival is unknown, or n < 2.
    """
    if weight not in PAIRS or by not in ("S", "d") or rival not in RIVALS:
        raise ValueError(
            f"weight, by and rival must be of {PAIRS}, S or d, {RIVALS}, got {weight!r}, {by!r}, {rival!r}"
        )
    # The weight of the chosen pair at every node, and one colour scale for all losses.
    arrays = weight_arrays(losses, rival=rival, pn=pn, at=at, n=n)
    exists = arrays["exists"]
    maps = [arrays[f"dL_d{by}{k}"][PAIRS.index(weight)] for k in range(1, len(losses) + 1)]
    felt = np.stack([np.where(exists, np.abs(w), 0.0) for w in maps])
    top = common_top(felt)
    with sheet(len(losses) * size + 0.6, size * 1.3, dark) as figure:
        ink = strokes.INK[dark]
        row = figure.subplots(1, len(losses), squeeze=False)[0]
        name = rf"$\partial L/\partial {by}_{{{weight}}}$"
        # One map per loss: S_ap to the right, S_an upwards.
        for k, (axes, loss, weights) in enumerate(zip(row, losses, maps, strict=True), start=1):
            shown = np.clip(weights if signed else np.abs(weights), -top, top)
            image = axes.imshow(
                shown, extent=(-1, 1, -1, 1), origin="lower", cmap=strokes.ramp(dark, signed=signed),
                vmin=-top if signed else 0, vmax=top, interpolation="nearest", zorder=1,
            )  # fmt: skip
            _frame(axes, dark)
            _no_triplets(axes, rival, pn, ink)
            layers.draw_boundaries(axes, arrays, dark, f"{{}}{k}")
            _cross(axes, at, ink)
            value = arrays[f"at_dL_d{by}{k}"][PAIRS.index(weight)]
            read = f"{name} = {_number(value)}" if arrays["at_exists"] else "no such triplet"
            heading = f"{loss.formula.title}\n{values(loss)}\nat the cross {read}"
            axes.set_title(heading, color=ink["text"], fontsize=8.5, loc="left")
        # Explain colours, lines and hatching. A positive dL/dS repels: gradient descent lowers the similarity.
        strokes.draw_bar(figure, list(row), image, name, dark, ends="both" if signed else "max")
        towards = ("attracts", "repels") if by == "S" else ("repels", "attracts")
        signs = f"below 0 it {towards[0]}, above it {towards[1]}; " if signed else "magnitude; "
        placed = _PLACED[rival] + (f", {pn:.4g}" if rival == "fixed" else "")
        words = (
            f"Weight of the pair {_NAMES[weight]}: {signs}N is {placed}. Solid: loss = 0; dashed: upper clamp; "
            f"hatched: no such triplet; dotted: equally similar. {'; '.join(x.formula.source for x in losses)}."
        )
        write_caption(figure, words, dark, width=int(20 * len(losses) * size))
    return figure


def _frame(axes: Axes, dark: bool) -> None:
    ink = strokes.INK[dark]
    axes.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", facecolor=ink["page"])
    axes.set(xticks=(-1, -0.5, 0, 0.5, 1), yticks=(-1, -0.5, 0, 0.5, 1))
    strokes.draw_frame(axes, dark, "$S_{ap}$", "$S_{an}$", size=9)
    axes.plot([-1, 1], [-1, 1], color=ink["text"], linewidth=0.7, linestyle=(0, (1, 3)), zorder=2)


def _no_triplets(axes: Axes, rival: Rival, pn: float, ink: dict[str, str]) -> None:
    """Hatch the area of (S_ap, S_an) in which no triplet of unit vectors exists."""
    axis = torch.linspace(-1, 1, 2 * NODES, dtype=torch.float64)
    room = similarities(axis[None, :], axis[:, None], rival, pn).determinant().numpy()
    if room.min() < 0:
        x = axis.numpy()
        hatched = axes.contourf(x, x, room, levels=[-9, 0], colors=[ink["page"]], hatches=["////"], zorder=1.5)
        hatched.set(edgecolor=ink["hatch"], linewidth=0.0, hatch_linewidth=0.5)


def _cross(axes: Axes, at: tuple[float, float], ink: dict[str, str]) -> None:
    for colour, width in ((ink["rim"], 2.6), (ink["text"], 1.1)):
        axes.plot(*at, "+", color=colour, markersize=12, markeredgewidth=width, zorder=5)
        axes.plot(*at, "o", color="none", markersize=7, markeredgecolor=colour, markeredgewidth=width, zorder=5)


def _number(x: float) -> str:
    return f"{x:.4g}".replace("-", "−") if math.isfinite(x) else "∞"


def snippet(
    losses: Sequence[TripletLoss],
    *,
    rival: Rival = "perpendicular",
    pn: float = 0.0,
    at: tuple[float, float] = (0.5, 0.6),
    n: int = NODES,
    **drawing: Any,
) -> str:
    """Return a Python script that computes and draws the maps of pair weights using only `dmlcore`.

    The script's variables axis, s, there, weights, by_distance and weights_there equal the results of `weight_arrays`
    bit for bit. The arguments are those of `weight_arrays`; `drawing` holds further arguments of `draw_weights`.
    """
    made = "\n".join(f"    {creation(loss)}," for loss in losses)
    at = (float(at[0]), float(at[1]))
    titles = " and ".join(loss.formula.title for loss in losses)
    return f'''"""{titles}: the weight of each pair over similarities."""
# Made with DML Lab. Sources: {"; ".join(loss.formula.source for loss in losses)}.

import torch

from dmlcore import losses
from dmlcore.figures.pair_weights import draw_weights, save_figure
from dmlcore.loss_analysis.pair_weights import similarities, triplet_weights

chosen = [
{made}
]

# Weights over S_ap (columns) and S_an (rows): weights[k].ap, .an, .pn, .loss, .raw, each ({n}, {n}).
axis = (torch.arange({n}, dtype=torch.float64) + 0.5) * 2 / {n} - 1
s = similarities(axis[None, :], axis[:, None], {rival!r}, {float(pn)!r})
weights = [triplet_weights(loss, s) for loss in chosen]  # dL/dS
by_distance = [found.by_distance(s) for found in weights]  # dL/dd
exists = s.determinant() >= 0

# The same weights for one triplet, S_ap and S_an = {at}.
there = similarities(*torch.tensor({list(at)!r}, dtype=torch.float64), {rival!r}, {float(pn)!r})
weights_there = [triplet_weights(loss, there) for loss in chosen]
for loss, found in zip(chosen, weights_there):
    print(f"{{loss.formula.title}}: loss {{found.loss.item():.6g}}, dL/dS of a-p {{found.ap.item():.6g}}, "
          f"a-n {{found.an.item():.6g}}, p-n {{found.pn.item():.6g}}")

figure = draw_weights(chosen, rival={rival!r}, pn={float(pn)!r}, at={at}, n={n}{arguments(drawing)})
save_figure(figure, "weights.pdf")  # or weights.svg, weights.png
'''
