"""Numerical export of a triplet on the unit circle or sphere: named arrays, and a script that recomputes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from dmlcore.figures.field_arrays import about_loss, arguments, creation, end_to_end
from dmlcore.geometry import Probe, distance
from dmlcore.geometry.boundary import Lines, level_lines
from dmlcore.geometry.scales import round_top
from dmlcore.geometry.sphere import (
    angle_map,
    central_angle,
    on_circle,
    on_sphere,
    random_triplets,
    scan_sphere,
    sphere_forces,
)
from dmlcore.losses import TripletLoss
from dmlcore.typing import Arrays, Floats

# number of latitudes of the sphere, of nodes on the circle, and of nodes along each side of the angle map
ROWS, RING, MAP = 181, 720, 181
SAMPLE = 4096  # number of random triplets from which a colour scale is determined

Surface = Literal["sphere", "circle"]
Place = float | Sequence[float]


def unit(place: Place) -> Tensor:
    """Return the float64 unit vector at an angle, shape (2,), or at a longitude and latitude, shape (3,).

    Args:
        place: One angle, or a pair of longitude and latitude, in degrees.

    Raises:
        ValueError: If `place` is not one or two finite numbers.
    """
    degrees = torch.as_tensor(place, dtype=torch.float64)
    if degrees.shape not in ((), (2,)) or not bool(degrees.isfinite().all()):
        raise ValueError(f"a place is an angle, or a longitude and a latitude, in finite degrees, got {place!r}")
    angle = torch.deg2rad(degrees)
    return on_circle(angle) if angle.ndim == 0 else on_sphere(*angle)


def sphere_arrays(
    loss: TripletLoss,
    anchor: Place,
    positive: Place,
    negative: Place,
    *,
    probe: Probe = "negative",
    rows: int = ROWS,
) -> Arrays:
    """Compute the field on the unit sphere that acts on `probe` at each node, and the forces within the triplet.

    All arrays are float64 unless stated otherwise. `raw` is the loss before the clamp, `energy` the clamped loss. If m2
    is finite, `raw` is +inf at distance 0 from a point whose repulsion diverges there.

    Args:
        loss: The triplet loss.
        anchor: Longitude and latitude of the anchor in degrees.
        positive: Longitude and latitude of the positive in degrees.
        negative: Longitude and latitude of the negative in degrees.
        probe: Point moved over the sphere: "anchor", "positive" or "negative".
        rows: Number of latitudes.

    Returns:
        Arrays by name, with H = rows and W = 2 rows - 1. On the grid:
        longitude (W,) from -180 to 180 and latitude (H,) from -90 to 90 degrees; raw, energy (H, W); active (H, W),
        boolean; force (H, W, 3), the component along the sphere; radial (H, W), the outward component that
        normalisation removes;
        outer (K, 2) and inner (K, 2), the concatenated polylines raw = 0 and raw = m2 as longitude and latitude;
        outer_sizes and inner_sizes (L,), the number of points of each line.
        For the triplet:
        points (3, 3); forces (3, 3) along the sphere; radials (3,), the outward components; angles (3,) = a-p, a-n, p-n
        in degrees; edges (3,), the chords of these angles; triplet (2,) = raw, energy.

    Raises:
        ValueError: If a point is not a longitude and a latitude, the probe is unknown or rows < 2.
    """
    points = [_on("sphere", name, x) for name, x in _named(anchor, positive, negative)]
    if rows < 2:
        raise ValueError(f"rows must be at least 2, got {rows}")
    longitude = torch.linspace(-180, 180, 2 * rows - 1, dtype=torch.float64)
    latitude = torch.linspace(-90, 90, rows, dtype=torch.float64)
    nodes = on_sphere(torch.deg2rad(longitude), torch.deg2rad(latitude)[:, None])
    arrays: Arrays = {"longitude": longitude.numpy(), "latitude": latitude.numpy()}
    arrays |= _scanned(loss, points, probe, nodes)
    scale, _ = colour_scale(loss, probe, 3)
    _bound(arrays, "", longitude, latitude, arrays["raw"], loss.m2, scale)
    return arrays | _triplet(loss, points)


def circle_arrays(
    loss: TripletLoss, anchor: Place, positive: Place, negative: Place, *, probe: Probe = "negative", n: int = MAP
) -> Arrays:
    """Compute the field on the unit circle that acts on `probe`, and a map of the loss over two angles.

    The angles of the map are those of the positive and the negative relative to the anchor.

    Args:
        loss: The triplet loss.
        anchor: Angle of the anchor in degrees.
        positive: Angle of the positive in degrees.
        negative: Angle of the negative in degrees.
        probe: Point moved over the circle: "anchor", "positive" or "negative".
        n: Nodes along each side of the map.

    Returns:
        Arrays by name. On the circle: angle (720,) in degrees; raw, energy, active, radial (720,) and force (720, 2) as
        in `sphere_arrays`.
        On the map: map_axis (n,) from -180 to 180 degrees; map_raw, map_energy, map_active (n, n), with the positive
        along columns and the negative along rows; map_outer, map_inner (K, 2) with map_outer_sizes, map_inner_sizes
        (L,).
        For the triplet: the same arrays as `sphere_arrays`, in two dimensions.

    Raises:
        ValueError: If a point is not an angle, the probe is unknown or n < 2.
    """
    points = [_on("circle", name, x) for name, x in _named(anchor, positive, negative)]
    if n < 2:
        raise ValueError(f"the map needs n >= 2 nodes along a side, got {n}")
    angle = torch.arange(RING, dtype=torch.float64) * (360 / RING)
    axis = torch.linspace(-180, 180, n, dtype=torch.float64)
    raw = angle_map(loss, torch.deg2rad(axis), torch.deg2rad(axis)).numpy()
    arrays: Arrays = {"angle": angle.numpy()} | _scanned(loss, points, probe, on_circle(torch.deg2rad(angle)))
    arrays |= {
        "map_axis": axis.numpy(),
        "map_raw": raw,
        "map_energy": raw.clip(0.0, loss.m2),
        "map_active": (raw > 0) & (raw < loss.m2),
    }
    scale, _ = colour_scale(loss, probe, 2)
    _bound(arrays, "map_", axis, axis, raw, loss.m2, scale)
    return arrays | _triplet(loss, points)


def colour_scale(loss: TripletLoss, probe: Probe, dimension: int) -> tuple[float, float]:
    """Return the upper limit of the colour scale and the reference force of arrows, from random unit triplets.

    Both depend on the loss but not on the displayed triplet, so that colours and arrows keep their meaning while points
    move.

    Args:
        loss: The triplet loss.
        probe: Point whose force is measured: "anchor", "positive" or "negative".
        dimension: Dimension of the unit vectors.

    Returns:
        The 95th percentile of the energy of active triplets, rounded up to two digits and at most m2, and the median
        force on the probe along the sphere.
    """
    triplets = random_triplets(SAMPLE, dimension)
    raw = loss.raw(*triplets)
    active = (raw > 0) & (raw < loss.m2)
    if not bool(active.any()):
        return 1.0, 1.0
    force = sphere_forces(loss, *triplets).tangential[["anchor", "positive", "negative"].index(probe)].norm(dim=-1)
    top = float(f"{round_top(float(raw[active].quantile(0.95))):.2g}")  # drops the rounding error of the last digit
    return min(top, loss.m2), max(float(force[active].median()), 1e-9)


def steady_lines(x: Tensor, y: Tensor, raw: Tensor, level: float, scale: float) -> Lines:
    """Return the lines where `raw` (H, W) over x (W,) and y (H,) equals `level`, smooth even near poles.

    Near a pole 1/d, the transform v / (|v| + scale) of v = raw - level is almost linear in d, so that few nodes
    suffice.
    """
    if math.isinf(level):
        return []
    above = (raw.clamp(-1e12, 1e12) - level).numpy()
    quotient = above / (np.abs(above) + scale)
    # scaled down to small values, on which level_lines interpolates linearly
    return level_lines(x.numpy(), y.numpy(), quotient / 100, 0.0)


def about(
    loss: TripletLoss, on: Surface, anchor: Place, positive: Place, negative: Place, *, probe: Probe = "negative"
) -> dict[str, Any]:
    """Return JSON-serialisable metadata for exported arrays: loss, source, surface, probe and positions in degrees."""
    places = dict(_named(anchor, positive, negative))
    note = (
        "force = minus the gradient of min(m2, max(0, raw)) along the unit sphere, radial = the outward part that "
        "normalisation removes; rows are latitudes, in the map angles of the negative; null stands for +infinity"
    )
    return about_loss(loss) | {"on": on, "probe": probe, "note": note} | places


def snippet(
    loss: TripletLoss,
    on: Surface,
    anchor: Place,
    positive: Place,
    negative: Place,
    *,
    probe: Probe = "negative",
    **drawing: Any,
) -> str:
    """Return a Python script that computes and draws a triplet on the sphere or circle using only `dmlcore`.

    The script's variables raw, energy, forces, field (and map_raw on the circle) equal the exported arrays bit for bit.

    The other arguments are those of `sphere_arrays` or `circle_arrays`; `drawing` holds further arguments of
    `draw_sphere` or `draw_circle`.
    """
    sphere = on == "sphere"
    place = f"on_{on}(*torch.deg2rad(" if sphere else f"on_{on}(torch.deg2rad("
    points = "\n".join(
        f"{name} = {place}torch.tensor({_plain(at)}, dtype=torch.float64)))"
        for name, at in _named(anchor, positive, negative)
    )
    given = ", ".join(str(_plain(at)) for at in (anchor, positive, negative))
    return f'''"""{loss.formula.title} on the unit {on}. Source: {loss.formula.source}."""
# Made with DML Lab

import torch

from dmlcore import losses
from dmlcore.figures.fields import save_figure
from dmlcore.figures.spheres import draw_{on}
from dmlcore.geometry.sphere import {"" if sphere else "angle_map, "}on_{on}, scan_sphere, sphere_forces

loss = {creation(loss)}

# Unit vectors, from {"longitude and latitude" if sphere else "angles"} in degrees.
{points}

# The triplet itself: energy before and after the clamp; forces along the {on}, and what normalisation removes.
raw, energy = loss.raw(anchor, positive, negative), loss.clamped(anchor, positive, negative)
forces = sphere_forces(loss, anchor, positive, negative)
print(f"raw {{raw.item():.6g}}, loss {{energy.item():.6g}}")
for name, tangential, radial in zip("apn", forces.tangential, forces.radial):
    print(f"force on {{name}}: {{tangential.tolist()}}, radial {{radial.item():.6g}}")

# The {probe} scans the {on}: field.raw, field.energy, field.active, field.tangential, field.radial.
{_SCAN[on]}
field = scan_sphere(loss, anchor, positive, negative, probe={probe!r}, nodes=nodes)

figure = draw_{on}(loss, {given}, probe={probe!r}{arguments(drawing)})
save_figure(figure, "{on}.pdf")  # or {on}.svg, {on}.png
'''


_SCAN: dict[str, str] = {
    "sphere": f"""longitude = torch.linspace(-180, 180, {2 * ROWS - 1}, dtype=torch.float64)
latitude = torch.linspace(-90, 90, {ROWS}, dtype=torch.float64)
nodes = on_sphere(torch.deg2rad(longitude), torch.deg2rad(latitude)[:, None])""",
    "circle": f"""angle = torch.arange({RING}, dtype=torch.float64) * {360 / RING}
nodes = on_circle(torch.deg2rad(angle))
axis = torch.linspace(-180, 180, {MAP}, dtype=torch.float64)
map_raw = angle_map(loss, torch.deg2rad(axis), torch.deg2rad(axis))  # columns: P from A, rows: N from A""",
}


def _named(anchor: Place, positive: Place, negative: Place) -> tuple[tuple[str, Place], ...]:
    return ("anchor", anchor), ("positive", positive), ("negative", negative)


def _on(surface: Surface, name: str, place: Place) -> Tensor:
    point = unit(place)
    if len(point) != (3 if surface == "sphere" else 2):
        kind = "a longitude and a latitude" if surface == "sphere" else "one angle"
        raise ValueError(f"{name} must be {kind} in degrees, got {place!r}")
    return point


def _scanned(loss: TripletLoss, points: list[Tensor], probe: Probe, nodes: Tensor) -> Arrays:
    field = scan_sphere(loss, *points, probe=probe, nodes=nodes)
    return {
        "raw": field.raw.numpy(),
        "energy": field.energy.numpy(),
        "active": field.active.numpy(),
        "force": field.tangential.numpy() + 0.0,  # turns -0 into 0
        "radial": field.radial.numpy() + 0.0,
    }


def _triplet(loss: TripletLoss, points: list[Tensor]) -> Arrays:
    a, p, n = points
    forces = sphere_forces(loss, a, p, n)
    pairs = ((a, p), (a, n), (p, n))
    return {
        "points": torch.stack(points).numpy(),
        "forces": torch.stack(forces.tangential).numpy() + 0.0,
        "radials": torch.stack(forces.radial).numpy() + 0.0,
        "angles": torch.stack([torch.rad2deg(central_angle(x, y)) for x, y in pairs]).numpy(),
        "edges": torch.stack([distance(x, y) for x, y in pairs]).numpy(),
        "triplet": torch.stack([loss.raw(a, p, n), loss.clamped(a, p, n)]).numpy(),
    }


def _bound(arrays: Arrays, prefix: str, x: Tensor, y: Tensor, raw: Floats, m2: float, scale: float) -> None:
    """Add the polylines raw = 0 and raw = m2 to `arrays`, with `prefix` before their names."""
    for name, level in (("outer", 0.0), ("inner", m2)):
        arrays |= end_to_end(prefix + name, steady_lines(x, y, torch.from_numpy(raw), level, scale))


def _plain(place: Place) -> float | list[float]:
    return cast("float | list[float]", np.asarray(place, dtype=float).tolist())
