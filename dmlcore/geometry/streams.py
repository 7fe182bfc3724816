"""Short streamlines of a force field, all integrated at the same time."""

from __future__ import annotations

import numpy as np

from dmlcore.typing import Array


def streamlets(force: Array, *, seeds: int = 18, reach: float = 1.3, steps: int = 8) -> Array:
    """Compute streamlines through the points of a lattice, by midpoint steps along the direction of the force.

    A streamline stops where the force vanishes or the grid ends. Streamlines of length 0 are left out.

    Args:
        force: Forces on the nodes of a regular grid, shape (H, W, 2).
        seeds: Lattice points per axis.
        reach: Length of a streamline on each side of its lattice point, in lattice cells.
        steps: Integration steps on each side of the lattice point.

    Returns:
        Streamlines in the direction of the force, shape (S, 2 * steps + 1, 2). Coordinates are fractions of the grid,
        from 0 to 1.
    """
    height, width = force.shape[:2]
    length = np.linalg.norm(force, axis=-1, keepdims=True)
    unit = np.divide(force, length, out=np.zeros_like(force), where=length > 0)
    row, column = np.indices((seeds, seeds))
    place = np.stack(((column + 0.5 + 0.25 * (-1.0) ** row) / seeds, (row + 0.5) / seeds), axis=-1).reshape(-1, 2)
    step = reach / seeds / steps

    def along(at: Array) -> Array:
        u, v = at[:, 0] * width - 0.5, at[:, 1] * height - 0.5
        i, j = np.clip(u, 0, width - 1.001).astype(int), np.clip(v, 0, height - 1.001).astype(int)
        f, g = (np.clip(u - i, 0, 1))[:, None], (np.clip(v - j, 0, 1))[:, None]
        low = unit[j, i] * (1 - f) + unit[j, i + 1] * f
        high = unit[j + 1, i] * (1 - f) + unit[j + 1, i + 1] * f
        inside = ((at >= 0) & (at <= 1)).all(1, keepdims=True)
        return np.asarray(np.where(inside, low * (1 - g) + high * g, 0.0))

    def walk(sign: float) -> list[Array]:
        line, at = [], place
        for _ in range(steps):
            at = at + sign * step * along(at + sign * step / 2 * along(at))
            line.append(at)
        return line

    lines = np.stack([*walk(-1.0)[::-1], place, *walk(1.0)], axis=1)
    moved: Array = lines[np.abs(lines[:, 0] - lines[:, -1]).max(1) > 1e-9]
    return moved
