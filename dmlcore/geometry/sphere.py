"""Triplets on the unit circle or sphere: conversion from and to angles, and forces on fixed and moving points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dmlcore.geometry.field_table import PROBES, field_table
from dmlcore.geometry.forces import EdgeEnergy, Probe, TripletEnergy

UNIT = 1e-6  # tolerance of a norm of 1


def on_circle(angle: Tensor) -> Tensor:
    """Return the points (..., 2) on the unit circle at the given angles (...) from the first axis."""
    return torch.stack([angle.cos(), angle.sin()], dim=-1)


def on_sphere(longitude: Tensor, latitude: Tensor) -> Tensor:
    """Return the points (..., 3) on the unit sphere at the given longitudes and latitudes (...), broadcast together."""
    longitude, latitude = torch.broadcast_tensors(longitude, latitude)
    parallel = latitude.cos()
    return torch.stack([parallel * longitude.cos(), parallel * longitude.sin(), latitude.sin()], dim=-1)


def angles(points: Tensor) -> Tensor:
    """Return the angles (..., 1) of points (..., 2), or the longitudes and latitudes (..., 2) of points (..., 3)."""
    longitude = torch.atan2(points[..., 1], points[..., 0])
    if points.shape[-1] == 2:
        return longitude[..., None]
    if points.shape[-1] != 3:
        raise ValueError(f"points must have 2 or 3 coordinates, got shape {tuple(points.shape)}")
    latitude = torch.atan2(points[..., 2], torch.hypot(points[..., 0], points[..., 1]))
    return torch.stack([longitude, latitude], dim=-1)


def central_angle(x: Tensor, y: Tensor) -> Tensor:
    """Return the angles (...) in [0, pi] between unit vectors (..., D), accurate for nearby and opposite vectors."""
    return 2 * torch.atan2((x - y).norm(dim=-1), (x + y).norm(dim=-1))


def tangent(force: Tensor, point: Tensor) -> Tensor:
    """Return the component of `force` in the tangent space of the unit sphere at `point`; both have shape (..., D)."""
    return force - radial(force, point)[..., None] * point


def radial(force: Tensor, point: Tensor) -> Tensor:
    """Return the component (...) of `force` along the unit vector `point`, positive outward.

    Normalisation of the embeddings removes this component.
    """
    return (force * point).sum(-1)


@dataclass(frozen=True)
class SphereForces:
    """Forces on anchor, positive and negative: tangential vectors (..., D) and radial components (...)."""

    tangential: tuple[Tensor, Tensor, Tensor]
    radial: tuple[Tensor, Tensor, Tensor]


def sphere_forces(loss: EdgeEnergy, a: Tensor, p: Tensor, n: Tensor) -> SphereForces:
    """Compute the tangential forces of the clamped loss on three unit vectors (..., D), and the radial components.

    The tangential force is minus the gradient of the loss along the sphere. Normalisation removes the radial component.

    Raises:
        ValueError: If a point is not a unit vector.
    """
    _units(a, p, n)
    f_a, f_p, f_n = field_table(loss, a, p, n).forces
    return SphereForces(
        (tangent(f_a, a), tangent(f_p, p), tangent(f_n, n)), (radial(f_a, a), radial(f_p, p), radial(f_n, n))
    )


@dataclass(frozen=True)
class SphereScan:
    """Energies and forces with the probe at each node of a circle or sphere and the other two points fixed."""

    raw: Tensor  # (...) energy before the clamp
    energy: Tensor  # (...) clamped energy
    active: Tensor  # (...) bool: 0 < raw < m2
    tangential: Tensor  # (..., D) force within the tangent space
    radial: Tensor  # (...) force component along the unit vector, positive outward; removed by normalisation


def scan_sphere(
    loss: EdgeEnergy, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", nodes: Tensor
) -> SphereScan:
    """Evaluate a loss with the probe at each of the unit vectors `nodes` (..., D) and the other two points (D,) fixed.

    All nodes share one forward and one backward pass.

    Raises:
        ValueError: If the probe is unknown or a point is not a unit vector.
    """
    _units(a, p, n)
    field = field_table(loss, a, p, n, probe=probe, at=nodes)
    return SphereScan(field.raw, field.energy, field.active, tangent(field.force, nodes), radial(field.force, nodes))


def raw_on_sphere(
    loss: TripletEnergy, a: Tensor, p: Tensor, n: Tensor, *, probe: Probe = "negative", nodes: Tensor
) -> Tensor:
    """Return the energy before the clamp (...) with the probe at each node, like `scan_sphere` but without forces."""
    if probe not in PROBES:
        raise ValueError(f"probe must be anchor, positive or negative, got {probe!r}")
    points = [nodes if name == probe else point for name, point in zip(PROBES, (a, p, n), strict=True)]
    with torch.no_grad():
        return loss.raw(*points).expand(nodes.shape[:-1])


def angle_map(loss: TripletEnergy, positive: Tensor, negative: Tensor) -> Tensor:
    """Return the energy before the clamp (H, W) over the angles a-p (W,) and a-n (H,) of triplets on the unit circle.

    The signed angles are theta_p - theta_a and theta_n - theta_a. A rotation-invariant loss on the circle depends on
    these two angles alone.

    Args:
        loss: Triplet loss.
        positive: Angles theta_p - theta_a, shape (W,).
        negative: Angles theta_n - theta_a, shape (H,).
    """
    with torch.no_grad():
        anchor = on_circle(torch.zeros((), dtype=positive.dtype))
        return loss.raw(anchor, on_circle(positive)[None, :], on_circle(negative)[:, None])


def fibonacci_sphere(count: int) -> Tensor:
    """Return `count` evenly spread points (count, 3) on the unit sphere.

    Heights are spaced evenly and consecutive longitudes differ by the golden angle.
    """
    i = torch.arange(count, dtype=torch.float64)
    height = 1 - (2 * i + 1) / count
    return on_sphere(i * math.pi * (3 - math.sqrt(5)), torch.asin(height))


def random_triplets(count: int, dimension: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Draw independent anchors, positives and negatives (count, dimension) uniformly on the unit sphere, in float64."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(3, count, dimension, dtype=torch.float64, generator=generator)
    a, p, n = drawn / drawn.norm(dim=-1, keepdim=True)
    return a, p, n


def _units(a: Tensor, p: Tensor, n: Tensor) -> None:
    for name, x in (("anchor", a), ("positive", p), ("negative", n)):
        if not bool(((x.detach().norm(dim=-1) - 1).abs() < UNIT).all()):
            raise ValueError(f"{name} must be a unit vector; divide it by its norm first")
