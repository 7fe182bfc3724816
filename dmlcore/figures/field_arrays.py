"""Numerical export of a force field: as named arrays, as JSON or npz, and as a script that recomputes the arrays."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from dmlcore.geometry import Probe, distance, field_table, forces, scan
from dmlcore.geometry.boundary import level_lines
from dmlcore.geometry.forces import direction
from dmlcore.losses import TripletLoss
from dmlcore.typing import Array, Arrays, Floats

Coordinates = Sequence[float]
View = tuple[float, float, float]

NODES = 201


def field_arrays(
    loss: TripletLoss,
    anchor: Coordinates,
    positive: Coordinates,
    negative: Coordinates,
    *,
    probe: Probe = "negative",
    view: View = (0.25, 0.0, 1.6),
    n: int = NODES,
) -> Arrays:
    """Compute the field that acts on `probe` at each node of the view, and the forces within the triplet.

    All arrays are float64 unless stated otherwise. `raw` is the loss before the clamp, `energy` the clamped loss. If m2
    is finite, `raw` is +inf at distance 0 from a point whose repulsion diverges there. Rows of the grids are y.

    Args:
        loss: The triplet loss.
        anchor: The two coordinates of the anchor.
        positive: The two coordinates of the positive.
        negative: The two coordinates of the negative.
        probe: Point moved over the view: "anchor", "positive" or "negative".
        view: Centre x, centre y and half width of the square.
        n: Nodes along each side.

    Returns:
        Arrays by name. On the grid:
        x, y (n,), the coordinates from edge to edge of the view; raw, energy (n, n); force (n, n, 2); active (n, n),
        boolean;
        outer (K, 2) and inner (K, 2), the concatenated polylines raw = 0 and raw = m2; outer_sizes and inner_sizes
        (L,), the number of points of each line.
        For the triplet:
        points (3, 2); forces (3, 2), the total force on each point; parts (3, 3, 2), the components of each force along
        the edges ap, an, pn; residuals (3, 2), the remaining components; edges (3,) = d_ap, d_an, d_pn; edge_forces
        (3,) = pull_ap, push_an, push_pn, where positive numbers mean attraction, repulsion and repulsion; triplet (2,)
        = raw, energy.

    Raises:
        ValueError: If a point is not two finite numbers, the view is empty, n < 2 or the probe is unknown.
    """
    a, p, s = (_point(k, v) for k, v in (("anchor", anchor), ("positive", positive), ("negative", negative)))
    x0, y0, half = view
    if not (all(map(math.isfinite, view)) and half > 0 and n >= 2):
        raise ValueError(f"view needs a finite centre and half width > 0 and n >= 2 nodes, got view={view}, n={n}")
    x, y = (torch.linspace(c - half, c + half, n, dtype=torch.float64) for c in (x0, y0))
    # The field at every node.
    field = scan(loss, a, p, s, probe=probe, x=x, y=y)
    arrays: Arrays = {
        "x": x.numpy(),
        "y": y.numpy(),
        "raw": field.raw.numpy(),
        "energy": field.energy.numpy(),
        "force": field.force.numpy() + 0.0,  # turns -0 into 0
        "active": field.active.numpy(),
    }
    # Boundaries of the active region, stored as concatenated polylines.
    for name, level in (("outer", 0.0), ("inner", loss.m2)):
        arrays |= end_to_end(name, level_lines(arrays["x"], arrays["y"], arrays["raw"], level))
    # The triplet itself: the force along each edge (columns ap, an, pn) on each point (rows anchor, positive,
    # negative).
    triplet = field_table(loss, a, p, s)
    pull, push_an, push_pn = (
        strength * direction(u, v) for strength, (u, v) in zip(triplet.strengths, ((p, a), (a, s), (p, s)), strict=True)
    )
    none = torch.zeros_like(a)
    parts = [[pull, push_an, none], [-pull, none, push_pn], [none, -push_an, -push_pn]]
    arrays["points"] = torch.stack([a, p, s]).numpy()
    arrays["forces"] = torch.stack(forces(loss, a, p, s)).numpy() + 0.0
    arrays["edges"] = torch.stack([distance(a, p), distance(a, s), distance(p, s)]).numpy()
    arrays["parts"] = torch.stack([torch.stack(row) for row in parts]).numpy() + 0.0
    arrays["residuals"] = torch.stack(triplet.residuals).numpy() + 0.0
    arrays["edge_forces"] = torch.stack(triplet.strengths).numpy() + 0.0
    arrays["triplet"] = torch.stack([loss.raw(a, p, s), loss.clamped(a, p, s)]).numpy()
    return arrays


def end_to_end(name: str, lines: Sequence[Floats]) -> Arrays:
    """Return polylines, each of shape (K, 2), as two arrays: their concatenated points, and the size of each line."""
    sizes = np.array([len(line) for line in lines], dtype=np.int64)
    return {name: np.concatenate(lines) if lines else np.empty((0, 2)), f"{name}_sizes": sizes}


def polylines(arrays: Arrays, name: str) -> list[Floats]:
    """Return the polylines (K, 2) stored under `name`, for example "outer" or "inner"."""
    ends = np.cumsum(arrays[f"{name}_sizes"])[:-1]
    return [line for line in np.split(arrays[name], ends) if len(line)]


def as_npz(arrays: Arrays, about: Mapping[str, Any]) -> bytes:
    """Return the arrays as a compressed npz file, with the metadata `about` stored as JSON text under "about"."""
    file = io.BytesIO()
    np.savez_compressed(file, about=np.array(_dumps(_finite(about))), **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def as_json(arrays: Arrays, about: Mapping[str, Any]) -> bytes:
    """Return UTF-8 JSON of the metadata `about` and the arrays as nested lists; non-finite numbers become null."""
    lists = {name: _lists(array) for name, array in arrays.items()}
    return _dumps({**_finite(about), **lists}).encode()


def about(loss: TripletLoss, *, probe: Probe = "negative", view: View = (0.25, 0.0, 1.6)) -> dict[str, Any]:
    """Return JSON-serialisable metadata for the arrays of a field: loss, hyper-parameters, source, probe and view."""
    return about_loss(loss) | {
        "probe": probe,
        "view": list(view),
        "note": "force = minus the gradient of min(m2, max(0, raw)); rows are y; null stands for +infinity",
    }


def about_loss(loss: TripletLoss) -> dict[str, Any]:
    """Return JSON-serialisable metadata of a loss: name, title, formula (LaTeX), source and hyper-parameters."""
    return {
        "loss": loss.formula.name,
        "title": loss.formula.title,
        "formula": loss.formula.latex,
        "source": loss.formula.source,
        "hyper": dict(loss.hyper),
    }


def snippet(
    loss: TripletLoss,
    anchor: Coordinates,
    positive: Coordinates,
    negative: Coordinates,
    *,
    probe: Probe = "negative",
    view: View = (0.25, 0.0, 1.6),
    n: int = NODES,
    **drawing: Any,
) -> str:
    """Return a Python script that computes and draws the field of a triplet using only `dmlcore`.

    The script's variables x, y, field, force_a, force_p and force_n equal the results of `field_arrays` bit for bit.

    The arguments are those of `field_arrays`; `drawing` holds further arguments of `draw_field`.
    """
    x0, y0, half = (float(v) for v in view)
    points = "\n".join(
        f"{name} = torch.tensor({[float(v) for v in point]}, dtype=torch.float64)"
        for name, point in (("anchor", anchor), ("positive", positive), ("negative", negative))
    )
    options = arguments(drawing)
    return f'''"""{loss.formula.title}: the field that acts on the {probe}. Source: {loss.formula.source}."""
# Made with DML Lab

import torch

from dmlcore import losses
from dmlcore.figures.fields import draw_field, save_figure
from dmlcore.geometry import forces, scan

loss = {creation(loss)}
{points}

# The triplet itself: energy before and after the clamp, forces on its points.
raw, energy = loss.raw(anchor, positive, negative), loss.clamped(anchor, positive, negative)
force_a, force_p, force_n = forces(loss, anchor, positive, negative)
print(f"raw {{raw.item():.6g}}, loss {{energy.item():.6g}}")
print(f"forces on a {{force_a.tolist()}}, p {{force_p.tolist()}}, n {{force_n.tolist()}}")

# The {probe} scans the plane: field.raw, field.energy, field.active (n, n), field.force (n, n, 2); rows are y.
x = torch.linspace({x0!r} - {half!r}, {x0!r} + {half!r}, {n}, dtype=torch.float64)
y = torch.linspace({y0!r} - {half!r}, {y0!r} + {half!r}, {n}, dtype=torch.float64)
field = scan(loss, anchor, positive, negative, probe={probe!r}, x=x, y=y)

view = ({x0!r}, {y0!r}, {half!r})
figure = draw_field(loss, anchor, positive, negative, probe={probe!r}, view=view, n={n}{options})
save_figure(figure, "field.pdf")  # or field.svg, field.png
'''


def creation(loss: TripletLoss) -> str:
    """Return Python source that creates the loss, for example "losses.create('ranking', m=0.2, m2=None)"."""
    return f"losses.create({loss.formula.name!r}{arguments(loss.hyper)})"


def arguments(given: Mapping[str, Any]) -> str:
    """Return `given` as the source of keyword arguments, each after a comma; infinity (no upper clamp) becomes None."""
    return "".join(f", {k}={'None' if v == math.inf else repr(v)}" for k, v in given.items())


def _point(name: str, value: Coordinates) -> torch.Tensor:
    point = torch.as_tensor(value, dtype=torch.float64)
    if point.shape != (2,) or not bool(point.isfinite().all()):
        raise ValueError(f"{name} must be two finite numbers, got {value!r}")
    return point


def _dumps(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def _lists(array: Array) -> Any:
    """Convert an array to nested lists and replace each non-finite number with None."""
    finite = np.isfinite(array)
    return (array if finite.all() else np.where(finite, array, np.array(None))).tolist()


def _finite(data: Any) -> Any:
    """Copy nested mappings and sequences, replacing each non-finite number with None."""
    if isinstance(data, Mapping):
        return {k: _finite(v) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(v) for v in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
