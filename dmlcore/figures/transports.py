"""Optimal transport from the pixels of a feature map to prototypes, as a figure, as arrays and as a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dmlcore.figures import strokes
from dmlcore.figures.field_arrays import arguments
from dmlcore.figures.fields import save_figure, sheet, write_caption
from dmlcore.figures.palette import INK
from dmlcore.pooling.analysis.gate import Gate
from dmlcore.pooling.analysis.red_blue import STEPS, informative, mixture
from dmlcore.typing import Arrays, Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["about", "draw_transport", "save_figure", "snippet", "transport_arrays"]

POOLINGS = ("linear programme", "smoothed", "average")
BACKGROUND = {dark: ink["kept"] for dark, ink in INK.items()}
FLOOR = 1e-17


def solved(pixels: Ints, prototypes: Ints, mu: float, epsilon: float) -> Gate:
    """Solve the transport from pixels (H, W, 2) to prototypes (m, 2).

    Each is given as its amounts of red and blue in steps of 1/160.
    """
    features, centres = (torch.from_numpy(mixture(np.asarray(x))) for x in (pixels, prototypes))
    return Gate.of(features.flatten(0, 1), centres, mu, epsilon)


def transport_arrays(
    pixels: Ints, prototypes: Ints, *, mu: float = 0.2, epsilon: float = 5.0, sweeps: int = 100
) -> Arrays:
    """Compute the transport of the pixels of a feature map to prototypes, and the pooled features.

    All arrays are float64; n = H W.

    Args:
        pixels: Red and blue of each pixel in steps of 1/160 (`red_blue.STEPS`), shape (H, W, 2).
        prototypes: Red and blue of each prototype in the same steps, shape (m, 2).
        mu: Transported mass in (0, 1].
        epsilon: Inverse temperature, > 0.
        sweeps: Number of sweeps to record.

    Returns:
        Arrays by name. Inputs: features (n, 3), prototypes (m, 3), cost (m, n). Solution: pi (m, n), rho and soft_min
        (n,), marginals (m,), and bias (), which is infinite at mu = 1. Poolings: weights (3, n) and pooled (3, 3), with
        one row each for the linear programme, the smoothed problem and the average. Convergence: its constants k and r
        (), sweep_biases (sweeps + 1,), sweep_errors (sweeps,), and newton_biases and newton_errors, which include the
        initial value.
    """
    gate = solved(pixels, prototypes, mu, epsilon)
    swept = gate.sweep_biases(sweeps)
    k, r = gate.contraction()
    arrays = {
        "features": gate.features,
        "prototypes": gate.prototypes,
        "cost": gate.cost,
        "soft_min": gate.soft_min,
        "rho": gate.rho,
        "pi": gate.pi,
        "weights": gate.weights,
        "pooled": gate.weights @ gate.features,
        "marginals": gate.marginals,
        "sweep_biases": swept,
        "sweep_errors": gate.sweep_errors(swept),
        "newton_biases": gate.newton_biases,
        "newton_errors": gate.newton_errors(),
    }
    numbers = {"bias": np.inf if gate.bias is None else gate.bias, "k": k, "r": r}
    return {name: x.numpy() for name, x in arrays.items()} | {name: np.array(x) for name, x in numbers.items()}


def about(*, mu: float = 0.2, epsilon: float = 5.0, sweeps: int = 100) -> dict[str, Any]:
    """Return JSON-serialisable metadata for exported transport arrays: parameters, names of the poolings, source."""
    return {
        "mu": mu,
        "epsilon": epsilon,
        "sweeps": sweeps,
        "poolings": list(POOLINGS),
        "source": "Gürbüz 2022, chapter 5",
        "note": "pixels row by row; errors: largest deviation of n rho and n pi from the exact solution",
    }


def draw_transport(
    pixels: Ints,
    prototypes: Ints,
    *,
    mu: float = 0.2,
    epsilon: float = 5.0,
    sweeps: int = 100,
    dark: bool = False,
    size: float = 2.6,
) -> Figure:
    """Draw the feature map, the weights of three poolings, and the solution of the transport problem.

    The lower row shows the gate of each pixel, the mean gate as a function of the bias, the convergence and the
    marginals. The figure is ready for `save_figure`.

    Args:
        pixels: Red and blue of each pixel in steps of 1/160 (`red_blue.STEPS`), shape (H, W, 2).
        prototypes: Red and blue of each prototype in the same steps, shape (m, 2).
        mu: Transported mass in (0, 1].
        epsilon: Inverse temperature, > 0.
        sweeps: Number of sweeps to draw.
        dark: Use the colours of the dark theme.
        size: Width of a map in inches.

    Raises:
        ValueError: If `transport` or `mixture` rejects an argument.
    """
    pixels = np.asarray(pixels)
    gate = solved(pixels, prototypes, mu, epsilon)
    shape, points = pixels.shape[:2], informative(gate.features.numpy())
    with sheet(4.3 * size, 2.5 * size, dark) as figure:
        ink = strokes.INK[dark]
        upper, lower = figure.subplots(2, 4)
        colours = _colours(gate.features.numpy(), dark)
        # Top row: the feature map, then the weights of three poolings on one colour scale up to 1 / (n mu), the largest
        # possible weight.
        upper[0].imshow(colours.reshape(*shape, 3), interpolation="nearest")
        _heading(upper[0], "map", f"{points.sum()} of {points.size} pixels informative", ink)
        for axes, name, weights in zip(upper[1:], POOLINGS, gate.weights.numpy(), strict=True):
            image = axes.imshow(weights.reshape(shape), cmap=strokes.ramp(dark), vmin=0, vmax=1 / (len(points) * mu))
            _heading(axes, name, f"{weights[points].sum():.3f} on the informative pixels", ink)
        for axes in upper:
            axes.set(xticks=[], yticks=[])
        strokes.draw_bar(figure, list(upper), image, "weight", dark, ends="neither")
        # Bottom row: gate, bias, convergence and marginals.
        _draw_gate(lower[0], gate, colours, ink)
        _draw_bias(lower[1], gate, sweeps, ink)
        _draw_convergence(lower[2], gate, sweeps, ink)
        _draw_marginals(lower[3], gate, dark, ink)
        for axes in lower:
            axes.set_facecolor(ink["page"])
            strokes.draw_frame(axes, dark)
        _, r = gate.contraction()
        words = (
            f"Generalized sum pooling, mu = {mu:.4g}, epsilon = {epsilon:.4g}, {len(gate.prototypes)} prototypes. "
            "Error: largest deviation of a pixel's mass from the exact solution, in shares of it"
            + (f"; dashed: predicted factor per sweep, r = {r:.4g}" if r < 1 else "")
            + ". Gürbüz 2022, chapter 5."
        )
        write_caption(figure, words, dark, width=int(56 * size))
    return figure


def _colours(features: Floats, dark: bool) -> Floats:
    from matplotlib.colors import to_rgb

    ink = strokes.INK[dark]
    corners = np.array([to_rgb(c) for c in (ink["negative"], BACKGROUND[dark], ink["positive"])])
    colours: Floats = np.clip(features @ corners, 0, 1)
    return colours


def _heading(axes: Axes, first: str, second: str, ink: dict[str, str]) -> None:
    axes.set_title(f"{first}\n{second}", color=ink["text"], fontsize=8, loc="left")
    axes.spines[:].set(color=ink["text"], linewidth=0.6)


def _draw_gate(axes: Axes, gate: Gate, colours: Floats, ink: dict[str, str]) -> None:
    soft_min = gate.soft_min.numpy()
    opened = 1 - len(soft_min) * gate.rho.numpy()
    if gate.bias is not None:
        low, high = min(soft_min.min(), -gate.bias) - 0.5, max(soft_min.max(), -gate.bias) + 0.5
        axis = torch.linspace(low, high, 200, dtype=torch.float64)
        axes.plot(axis, torch.sigmoid(gate.bias + axis), color=ink["text"], linewidth=1)
        axes.axvline(-gate.bias, color=ink["text"], linewidth=0.8, linestyle=(0, (4, 3)))
    axes.scatter(soft_min, opened, c=colours, s=14, edgecolors=ink["text"], linewidths=0.4, zorder=3)
    bias = "infinite" if gate.bias is None else f"{gate.bias:.4g}"
    _labels(axes, f"gate s of each pixel, a* = {bias}", "closeness l", ink)
    axes.set_ylim(-0.05, 1.05)


def _draw_bias(axes: Axes, gate: Gate, sweeps: int, ink: dict[str, str]) -> None:
    swept, newton = gate.sweep_biases(min(sweeps, 40)), gate.newton_biases
    ends = torch.cat([swept, newton, -gate.soft_min.amin()[None], -gate.soft_min.amax()[None]])
    axis = torch.linspace(float(ends.min()) - 1, float(ends.max()) + 1, 200, dtype=torch.float64)
    axes.plot(axis, gate.mean_gate(axis), color=ink["text"], linewidth=1)
    axes.axhline(gate.mu, color=ink["text"], linewidth=0.8, linestyle=(0, (1, 2)))
    axes.plot(swept, gate.mean_gate(swept), "s", color=ink["negative"], markersize=3)
    axes.plot(newton, gate.mean_gate(newton), "o", color=ink["positive"], markersize=3.5)
    _labels(axes, "mean gate; squares sweeps, dots Newton", "bias a", ink)
    axes.set_ylim(-0.05, 1.05)


def _draw_convergence(axes: Axes, gate: Gate, sweeps: int, ink: dict[str, str]) -> None:
    errors = gate.sweep_errors(gate.sweep_biases(sweeps)).numpy()
    newton = gate.newton_errors().numpy()
    _, r = gate.contraction()
    steps = np.arange(1, sweeps + 1)
    axes.semilogy(steps, np.maximum(errors, FLOOR), color=ink["negative"], linewidth=1.8)
    axes.semilogy(np.arange(len(newton)), np.maximum(newton, FLOOR), "o-", color=ink["positive"], markersize=3)
    last = int(np.flatnonzero(errors > 1e-12)[-1]) if (errors > 1e-12).any() else 0
    if r < 1:
        predicted = errors[last] * r ** (steps - last - 1.0)
        axes.semilogy(steps, np.maximum(predicted, FLOOR), color=ink["text"], linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylim(FLOOR, 3)
    _labels(axes, "error of sweeps (line), Newton (dots)", "steps", ink)


def _draw_marginals(axes: Axes, gate: Gate, dark: bool, ink: dict[str, str]) -> None:
    z = gate.marginals.numpy()
    axes.bar(np.arange(1, len(z) + 1), z, color=_colours(gate.prototypes.numpy(), dark), edgecolor=ink["text"])
    axes.set_xticks(np.arange(1, len(z) + 1))
    axes.set_ylim(0, 1)
    _labels(axes, "share z of the mass", "prototype", ink)


def _labels(axes: Axes, title: str, across: str, ink: dict[str, str]) -> None:
    axes.set_title(title, color=ink["text"], fontsize=8, loc="left")
    axes.set_xlabel(across, color=ink["text"], fontsize=8)


def snippet(
    pixels: Ints, prototypes: Ints, *, mu: float = 0.2, epsilon: float = 5.0, sweeps: int = 100, **drawing: Any
) -> str:
    """Return a Python script that solves and draws the transport of a feature map using only `dmlcore`.

    `drawing` holds further arguments of `draw_transport`.
    """
    rows = "\n".join(f"    {row}," for row in np.asarray(pixels).tolist())
    return f'''"""Generalized sum pooling of a map: mu = {mu:g}, epsilon = {epsilon:g}."""
# Made with DML Lab. Source: Gürbüz 2022, chapter 5.

import numpy as np
import torch

from dmlcore.figures.transports import draw_transport, save_figure
from dmlcore.pooling import pooling_weights, prototype_costs, selection, transport
from dmlcore.pooling.analysis.red_blue import mixture

# Red and blue of each pixel in steps of 1/{STEPS}; the rest is green background.
pixels = np.array([
{rows}
])
prototypes = np.array({np.asarray(prototypes).tolist()})
mu, epsilon = {mu!r}, {epsilon!r}

features = torch.from_numpy(mixture(pixels)).flatten(0, 1)
cost = prototype_costs(features, torch.from_numpy(mixture(prototypes)))
rho, pi = transport(cost, mu, epsilon)
weights = pooling_weights(rho, mu)
print("smoothed        ", (weights @ features).tolist())
print("linear programme", (selection(cost, mu) @ features).tolist())
print("average         ", features.mean(0).tolist())

figure = draw_transport(pixels, prototypes, mu=mu, epsilon=epsilon, sweeps={sweeps}{arguments(drawing)})
save_figure(figure, "transport.pdf")  # or transport.svg, transport.png
'''
