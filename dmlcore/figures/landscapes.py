"""Surface plots of the energy over the position of one point of a triplet, for one or several losses.

A figure is a JSON-serialisable dictionary that plotly.js draws, on a page or in an HTML file
(https://plotly.com/javascript/reference/). The Python package plotly is not imported.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dmlcore.figures.palette import mixed
from dmlcore.figures.strokes import INK, RAMP, SIGNED
from dmlcore.geometry.boundary import level_lines
from dmlcore.geometry.field_table import PROBES
from dmlcore.geometry.forces import Probe
from dmlcore.geometry.loss_variant import Variant, scan_variant
from dmlcore.geometry.scales import percentile, round_top
from dmlcore.simulation.marble import Roll, View
from dmlcore.typing import Array, Floats

Trace = dict[str, Any]

NODES = 81  # nodes along a side of the surface
# percentile of the energies that must be visible; without clipping, extreme energies would flatten all other heights
PERCENT = 97
STEEP = 3.0  # clip the surface if its highest energy exceeds this multiple of the percentile PERCENT
# height above the surface as a share of the plot's height: of lines, and of a marble's centre
LIFT, STAND = 0.012, 0.05
SLOPE = 0.22  # length of the tangent seen from above, in half widths of the view
# number of frames, equally spaced in time, until a marble has covered the share ALMOST of its path; ten more frames
# cover the rest
FRAMES, ALMOST = 90, 0.98
EYE = {"x": 1.85, "y": 0.53, "z": 1.2}  # camera position that keeps in view a negative that is pushed towards +y


@dataclass(frozen=True)
class Surface:
    """Energy on a grid of probe positions, and the heights at which the drawn surface is clipped."""

    variant: Variant
    x: Floats  # (n,)
    y: Floats  # (n,)
    raw: Floats  # (n, n)
    energy: Floats  # (n, n): energy before clipping
    low: float
    high: float
    lowest: float  # lowest energy, including the energy at the positions of the other two points; may be infinite
    highest: float

    @property
    def cut(self) -> Floats:
        """Energies clipped to the drawn range."""
        return np.clip(self.energy, self.low, self.high)

    @property
    def hidden(self) -> str:
        """Sentence on the range of energies that clipping hides; empty if nothing is hidden."""
        ends = [
            f"cut off {where} {_plain(at)} (it continues to {_plain(end)})"
            for where, at, end, hides in (
                ("above", self.high, self.highest, self.highest > self.high * (1 + 1e-9)),
                ("below", self.low, self.lowest, self.lowest < self.low - 1e-9 * abs(self.low)),
            )
            if hides
        ]
        return f"The surface is {' and '.join(ends)}." if ends else ""


def surface(variant: Variant, points: Sequence[Tensor], *, probe: Probe, view: View, n: int = NODES) -> Surface:
    """Compute the energy of a triplet with its `probe` at each of n x n nodes, from edge to edge of the view.

    Args:
        variant: The loss and its variant.
        points: Anchor, positive and negative, shape (2,) each, float64.
        probe: Point that is moved: "anchor", "positive" or "negative".
        view: Centre x, centre y and half width of the square.
        n: Nodes along each side.
    """
    x0, y0, half = view
    x, y = (torch.linspace(c - half, c + half, n, dtype=torch.float64) for c in (x0, y0))
    a, p, s = points
    table = scan_variant(variant, a, p, s, probe=probe, x=x, y=y)
    energy = table.energy.numpy()
    others = torch.stack([point for name, point in zip(PROBES, points, strict=True) if name != probe])
    poles = variant.table(a, p, s, probe=probe, at=others).energy.numpy()
    seen = np.concatenate([energy.ravel(), poles])
    seen = seen[~np.isnan(seen)]
    low, high = -_end(-seen), _end(seen)
    if variant.clamp:
        low = min(low, variant.shift)
    if not high > low:  # flat
        high = low + 1.0
    ends = (low, high, float(seen.min()), float(seen.max()))
    return Surface(variant, x.numpy(), y.numpy(), table.raw.numpy(), energy, *ends)


def to_one_scale(surfaces: Sequence[Surface]) -> list[Surface]:
    """Return copies of the surfaces, all clipped to the range from the lowest `low` to the highest `high`."""
    low, high = min(s.low for s in surfaces), max(s.high for s in surfaces)
    return [replace(s, low=low, high=high) for s in surfaces]


def _end(values: Floats) -> float:
    """Return the upper limit of drawn heights: the maximum, or a rounded percentile if a few values far exceed it."""
    typical = percentile(values, PERCENT)
    highest = float(values.max())
    if math.isfinite(highest) and highest <= max(STEEP * typical, 0.0):
        return highest
    return round_top(typical) if typical > 0 else typical


@dataclass(frozen=True)
class Landscape:
    """Energy surfaces of one triplet, with either one rolling marble per surface or none."""

    surfaces: Sequence[Surface]
    points: Sequence[Tensor]
    probe: Probe
    view: View
    titles: Sequence[str]
    rolls: Sequence[Roll] = ()

    @property
    def range(self) -> tuple[float, float]:
        """Range of drawn heights, common to all surfaces."""
        low, high = min(s.low for s in self.surfaces), max(s.high for s in self.surfaces)
        return low - 0.02 * (high - low), high + (STAND + 0.05) * (high - low)


def draw(landscape: Landscape, *, dark: bool = False, stacked: bool = False) -> dict[str, Any]:
    """Return a plotly.js figure as a dictionary with the keys "data", "layout" and "marbles".

    Each entry of "marbles" holds the index of the trace of a moving marble and its coordinates in every frame.

    Args:
        landscape: The surfaces and marbles.
        dark: Use the colours of the dark theme.
        stacked: Place surfaces one below another instead of side by side.
    """
    data: list[Trace] = []
    marbles = []
    for k, shown in enumerate(landscape.surfaces):
        data += _still(landscape, shown, dark)
        if landscape.rolls:
            data += _moving(landscape, shown, landscape.rolls[k], dark)
            marbles.append({"trace": len(data) - 1} | frames(landscape, shown, landscape.rolls[k]))
        for trace in data:
            trace.setdefault("scene", f"scene{k + 1 if k else ''}")
    return {"data": data, "layout": _layout(landscape, dark, stacked), "marbles": marbles}


def _still(landscape: Landscape, shown: Surface, dark: bool) -> list[Trace]:
    """Return the fixed traces: surface, boundaries of the active region, points, and the tangent at the probe."""
    ink, (floor, top) = INK[dark], landscape.range
    signed = shown.low < 0 < shown.high and not shown.variant.clamp
    colours = (SIGNED if signed else RAMP)[dark]
    most = max(abs(shown.low), abs(shown.high))
    ends = (-most, most) if signed else (shown.low, shown.high)
    levels = {"show": True, "color": ink["grid"][:7], "width": 1, "usecolormap": False}
    step = round_top((shown.high - shown.low) / 8)
    traces: list[Trace] = [
        {
            "type": "surface",
            "name": "energy",
            "x": typed(shown.x),
            "y": typed(shown.y),
            "z": typed(shown.cut),
            "colorscale": [[i / (len(colours) - 1), colour] for i, colour in enumerate(colours)],
            "cmin": ends[0],
            "cmax": ends[1],
            "showscale": False,
            "contours": {"z": levels | {"start": shown.low + step, "end": shown.high, "size": step}},
            "lighting": {"ambient": 0.75, "diffuse": 0.45, "specular": 0.04, "roughness": 0.9},
            "hovertemplate": "%{x:.2f}, %{y:.2f}<br>loss %{z:.3f}<extra></extra>",
        }
    ]
    for level, dash in ((0.0, "solid"), (shown.variant.loss.m2, "dash")):
        if lines := level_lines(shown.x, shown.y, shown.raw, level):
            ring = np.concatenate([np.concatenate([line, [[np.nan, np.nan]]]) for line in lines])
            heights = _height(_energies(landscape, shown, np.nan_to_num(ring)), shown, top - floor)
            traces.append(_line(ring[:, 0], ring[:, 1], heights, ink["text"], 4, dash))
    places = np.stack([point.numpy() for point in landscape.points])
    heights = _height(_energies(landscape, shown, places), shown, top - floor, STAND)
    traces.append(
        {
            "type": "scatter3d",
            "mode": "markers+text",
            "name": "points",
            "x": typed(places[:, 0]),
            "y": typed(places[:, 1]),
            "z": typed(heights),
            "text": [name[0].upper() for name in PROBES],
            "textposition": "top center",
            "textfont": {"color": [ink[name] for name in PROBES], "size": 15},
            "marker": {"color": [ink[name] for name in PROBES], "size": 5, "line": {"color": ink["rim"], "width": 1}},
            "hoverinfo": "skip",
        }
    )
    return traces + _tangent(landscape, shown, dark)


def _tangent(landscape: Landscape, shown: Surface, dark: bool) -> list[Trace]:
    """Return the traces of the downhill tangent at the probe, with slope |F|; [] if the force is zero or not finite.

    A convex surface hides its tangent, so a horizontal arrow above the surface also shows the direction, labelled with
    the magnitude of the force.
    """
    ink, (floor, top) = INK[dark], landscape.range
    table = shown.variant.table(*landscape.points, probe=landscape.probe)
    place = landscape.points[PROBES.index(landscape.probe)].numpy()
    height, force = float(np.clip(float(table.energy), shown.low, shown.high)), table.force.numpy()
    size = math.hypot(*force)
    if not 0 < size < math.inf:
        return []
    length = min(SLOPE * landscape.view[2], (top - floor) / 2 / size)
    tip = place + force / size * length
    x, y = (np.array([place[i], tip[i]]) for i in (0, 1))
    height += STAND * (top - floor)
    z = np.array([height, height - size * length])
    arrow = _line(x, y, z, ink["force"], 8) | {
        "name": "slope",
        "mode": "lines+markers",
        "marker": {"size": [0.1, 6], "color": ink["force"], "symbol": "diamond"},
    }
    above = _line(x, y, np.full(2, height), ink["force"], 5) | {
        "name": "force",
        "mode": "lines+markers+text",
        "marker": {"size": [0.1, 5], "color": ink["force"], "symbol": "diamond"},
        "text": ["", _plain(size)],
        "textposition": "middle right",
        "textfont": {"color": ink["forceText"], "size": 14},
    }
    return [arrow, above]


def _moving(landscape: Landscape, shown: Surface, way: Roll, dark: bool) -> list[Trace]:
    """Return the traces of a marble's path on the surface and of the marble at its end."""
    ink, (floor, top) = INK[dark], landscape.range
    colour, x, y = ink[landscape.probe], way.path[:, 0], way.path[:, 1]
    z = _height(way.energy, shown, top - floor)
    end = _height(way.energy[-1:], shown, top - floor, STAND)
    marble = {"size": 6, "color": colour, "line": {"color": ink["text"], "width": 2}}
    return [
        _line(x, y, z, colour, 7) | {"name": "way"},
        _line(x[-1:], y[-1:], end, colour, 1) | {"name": "marble", "mode": "markers", "marker": marble},
    ]


def _energies(landscape: Landscape, shown: Surface, places: Floats) -> Floats:
    """Return the energy with the probe at each of the positions `places` (K, 2)."""
    at = torch.from_numpy(places)
    return shown.variant.table(*landscape.points, probe=landscape.probe, at=at).energy.numpy()


def _height(energy: Floats, shown: Surface, span: float, lift: float = LIFT) -> Floats:
    return np.clip(energy, shown.low, shown.high) + lift * span


def frames(landscape: Landscape, shown: Surface, way: Roll) -> dict[str, list[float]]:
    """Return the marble's x, y and z in each frame of the animation.

    The slow end of the roll is shortened to ten frames.
    """
    floor, top = landscape.range
    steps = np.hypot(*np.diff(way.path, axis=0).T)
    gone = np.concatenate([[0.0], np.cumsum(steps)])
    nearly = float(way.times[np.searchsorted(gone, ALMOST * gone[-1])])
    at = np.concatenate([np.linspace(0.0, nearly, FRAMES), np.linspace(nearly, way.times[-1], 11)[1:]])
    named = {"x": way.path[:, 0], "y": way.path[:, 1], "z": _height(way.energy, shown, top - floor, STAND)}
    return {name: np.round(np.interp(at, way.times, values), 4).tolist() for name, values in named.items()}


def _line(x: Floats, y: Floats, z: Floats, colour: str, width: float, dash: str = "solid") -> Trace:
    return {
        "type": "scatter3d",
        "mode": "lines",
        "x": typed(x),
        "y": typed(y),
        "z": typed(z),
        "line": {"color": colour, "width": width, "dash": dash},
        "hoverinfo": "skip",
    }


def _layout(landscape: Landscape, dark: bool, stacked: bool) -> dict[str, Any]:
    ink, (x0, y0, half), count = INK[dark], landscape.view, len(landscape.surfaces)
    paper, floor = "rgba(0,0,0,0)", landscape.range
    axis = {
        "color": ink["text"],
        # opaque, because plotly.js draws transparent colours too bright in 3-D
        "gridcolor": mixed(ink["text"], ink["page"], 0.2),
        "showbackground": False,
        "zeroline": False,
        "nticks": 5,
        "showspikes": False,
        "tickfont": {"size": 11},
    }
    layout: dict[str, Any] = {
        "paper_bgcolor": paper,
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "showlegend": False,
        "font": {"color": ink["text"]},
        "hoverlabel": {"bgcolor": ink["page"], "bordercolor": ink["text"], "font": {"color": ink["text"]}},
        "annotations": [],
    }
    for k, title in enumerate(landscape.titles):
        share = [k / count, (k + 1) / count]
        whole = [0.0, 1.0]
        across, up = (whole, [1 - share[1], 1 - share[0]]) if stacked else (share, whole)
        layout[f"scene{k + 1 if k else ''}"] = {
            "domain": {"x": across, "y": up},
            "xaxis": axis | {"range": [x0 - half, x0 + half], "title": {"text": ""}},
            "yaxis": axis | {"range": [y0 - half, y0 + half], "title": {"text": ""}},
            "zaxis": axis | {"range": list(floor), "title": {"text": ""}},
            "aspectmode": "manual",
            "aspectratio": {"x": 1.15, "y": 1.15, "z": 0.72},
            "camera": {"eye": EYE, "center": {"x": 0, "y": 0, "z": -0.15}},
            "bgcolor": paper,
            "dragmode": "turntable",
        }
        if count > 1:
            place = {"x": sum(across) / 2, "y": up[1], "xref": "paper", "yref": "paper", "xanchor": "center"}
            layout["annotations"].append(
                place | {"text": title, "showarrow": False, "yanchor": "top", "font": {"size": 13}}
            )
    return layout


def typed(values: Array) -> dict[str, str]:
    """Return numbers in plotly.js's compact encoding: float32 in base64."""
    exact = np.ascontiguousarray(values, dtype="<f4")
    return {
        "dtype": "f4",
        "bdata": base64.b64encode(exact.tobytes()).decode(),
        "shape": ", ".join(map(str, exact.shape)),
    }


def _plain(value: float) -> str:
    if not math.isfinite(value):
        return "infinity" if value > 0 else "minus infinity"
    return f"{value:.3g}".replace("-", "−")
