"""Simulation of charges, which are labelled points in the plane that move under the forces of a triplet loss.

Each step evaluates the loss on all points, records a frame, and moves the points with an optimiser.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dmlcore import mining
from dmlcore.geometry.covering import average_covering_radius
from dmlcore.losses.engine.distances import weighted_gradients
from dmlcore.losses.engine.table import pair_tables
from dmlcore.metrics import retrieval
from dmlcore.simulation.measures import class_radii
from dmlcore.simulation.placements import start_points
from dmlcore.simulation.spec import ALL, MOST_STEPS, OPTIMISERS, REACH, Dynamics, Spec
from dmlcore.timeline.history import History
from dmlcore.typing import Singles

STRIDE = 0.25  # maximum distance that a point moves per step, so that large forces do not throw points far away
# maximum force passed to the optimiser, so that one steep step does not dominate its running averages
STRONGEST = 100.0
_MOVING = ("momentum_buffer", "exp_avg")  # entries of the optimiser state that act as velocities


@dataclass(frozen=True)
class ChargesFrame:
    """State of the charges at one step: positions, the forces that move the points next, and measurements."""

    positions: Singles  # (N, 2)
    # (N, 2): N times the negative gradient of the mean loss, or only its pull or push, as set by `Dynamics.side`
    force: Singles
    loss: float
    active: float  # fraction of the evaluated triplets with 0 < raw < m2, where raw is the loss before clamping
    pull: float  # mean over active triplets of dE/d(d_ap); E is the loss of a triplet
    push: float  # mean over active triplets of -dE/d(d_an) - dE/d(d_pn)
    covering: float  # greedy covering radius, averaged over the classes (`average_covering_radius`)
    map_at_r: float
    largest_step: float  # largest distance that a point moved since the previous step
    triplets: int  # number of evaluated triplets: all valid ones, or the mined ones
    capped: int  # number of points whose movement was clipped to STRIDE
    means: Singles  # (C, 2) class means
    radii: Singles  # (C,) largest distance of a point from its class mean


class Simulation(History[Spec, ChargesFrame]):
    """Simulation of the charges that a spec describes, with one recorded frame per step.

    Loss and gradients are computed in float32. Repeated runs are bit-identical with one torch thread
    (`torch.set_num_threads(1)`), or if the loss does not depend on norms and no miner is used. Otherwise parallel
    scatter sums have no fixed order.
    """

    most_steps = MOST_STEPS

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        points, labels = start_points(spec.start, spec.classes, spec.per_class, spec.seed)
        self.labels = labels
        self._labels = torch.from_numpy(labels)
        self._x = torch.nn.Parameter(torch.from_numpy(points.astype(np.float32)))
        self._way: tuple[float, int] = (0.0, 0)
        self._law = spec.law
        self._optimiser = self._fresh_optimiser()
        if spec.law.normalise != "none":
            self._to_circle()
        self._at = 0  # step of the current positions
        self._enter(0)

    @property
    def nbytes(self) -> int:
        """Upper bound of the memory of all frames in bytes: float32 arrays and the objects that hold them."""
        return len(self.frames) * (16 * self.spec.points + 12 * self.spec.classes + 1000)

    # ---- one step
    def _begun(self, spec: Spec, shared: int) -> Simulation:
        return Simulation(spec)

    def _next(self) -> ChargesFrame:
        # Replay the optimiser's steps from the recorded forces after a fork, without evaluating the loss.
        while self._at < len(self.frames):
            self._move(self.frames[self._at].force)
            self._at += 1
            self._enter(self._at)
        return self._evaluate()

    def _evaluate(self) -> ChargesFrame:
        law, x = self._law, self._x
        loss = law.module()
        with torch.enable_grad():
            # Derivatives of the loss with respect to every distance and norm.
            distances, norms = pair_tables(x)
            mined = None if law.miner == ALL else mining.MINERS[law.miner](distances, self._labels)
            energy = loss.of_tables(distances, norms, self._labels, mined)
            by_distance, by_norm = torch.autograd.grad(energy, (distances, norms), retain_graph=True)
        by_distance, by_norm = (g.nan_to_num(0.0, posinf=0.0, neginf=0.0) for g in (by_distance, by_norm))
        # The pull acts along distances within a class, the push along distances between classes.
        same = self._labels[:, None] == self._labels
        pull, push = by_distance * same, by_distance * ~same
        # A term in the norms acts on single points and is neither pull nor push, so it is applied only if `side` is
        # "both".
        acting = {"pull": pull, "push": push, "both": by_distance}[law.side]
        radial = by_norm if law.side == "both" else torch.zeros_like(by_norm)
        (gradient,) = weighted_gradients((distances, norms), (x,), (acting, radial))
        counts = loss.counts
        # converts means over valid triplets, such as the loss, to means over active triplets
        per_active = counts.valid / max(counts.active, 1)
        positions = x.detach().numpy().copy()
        exact = positions.astype(np.float64)
        means, radii = class_radii(exact, self.labels)
        scores = retrieval(exact, self.labels, ks=(1,))
        return ChargesFrame(
            positions=positions,
            force=self._bounded(-gradient * len(x)).numpy(),
            loss=_finite(float(energy.detach())),
            active=counts.active / max(counts.valid, 1),
            pull=float(pull.double().sum()) * per_active,
            push=0.0 - float(push.double().sum()) * per_active,  # 0.0 - x avoids -0
            covering=average_covering_radius(exact, self.labels),
            map_at_r=scores.map_at_r or 0.0,
            largest_step=self._way[0],
            triplets=counts.valid,
            capped=self._way[1],
            means=means.astype(np.float32),
            radii=radii.astype(np.float32),
        )

    def _bounded(self, force: Tensor) -> Tensor:
        """Return the forces with their lengths limited to STRONGEST.

        If `normalise` is "project", forces are first projected onto the tangents of the unit circle.
        """
        x = self._x.detach()
        if self._law.normalise == "project":
            force = force - (force * x).sum(1, keepdim=True) * x
        size = torch.linalg.vector_norm(force, dim=1, keepdim=True)
        bounded: Tensor = force * (STRONGEST / size.clamp_min(STRONGEST))
        return bounded

    @torch.no_grad()
    def _move(self, force: Singles) -> None:
        """Take one optimiser step; limit the distance per point to STRIDE, and coordinates to [-REACH, REACH]."""
        before = self._x.detach().clone()
        self._x.grad = -torch.from_numpy(force)
        self._optimiser.step()
        way = self._x - before
        length = torch.linalg.vector_norm(way, dim=1, keepdim=True)
        self._x.copy_(before + way * (STRIDE / length.clamp_min(STRIDE)))
        self._x.clamp_(-REACH, REACH)
        if self._law.normalise != "none":
            self._to_circle()
        self._way = float(torch.linalg.vector_norm(self._x - before, dim=1).max()), int((length > STRIDE).sum())

    @torch.no_grad()
    def _enter(self, step: int) -> None:
        """Apply the changes that the spec lists for this step; called before the step is evaluated."""
        for change in self.spec.changes:
            if change.at != step:
                continue
            if change.law and change.law != self._law:
                self._obey(change.law)
            for index, x, y in change.moved:
                self._x[index] = torch.tensor((x, y))
                for state in self._optimiser.state.values():
                    for name in _MOVING:
                        if state.get(name) is not None:
                            state[name][index] = 0.0  # a point moved by the user starts at rest
            if self._law.normalise != "none":
                self._to_circle()

    def _obey(self, law: Dynamics) -> None:
        """Switch to other dynamics; keep the optimiser state if the kind of optimiser does not change."""
        same_kind, self._law = law.optimiser == self._law.optimiser, law
        if same_kind:
            for group in self._optimiser.param_groups:
                group["lr"] = law.step_size
        else:
            self._optimiser = self._fresh_optimiser()

    def _fresh_optimiser(self) -> torch.optim.Optimizer:
        return OPTIMISERS[self._law.optimiser].create([self._x], lr=self._law.step_size)

    @torch.no_grad()
    def _to_circle(self) -> None:
        """Normalise all points in place to length 1; move a point at the origin to (1, 0)."""
        size = torch.linalg.vector_norm(self._x, dim=1, keepdim=True)
        self._x.copy_(torch.where(size > 0, self._x / size.clamp_min(1e-30), torch.tensor([1.0, 0.0])))


def _finite(x: float) -> float:
    return float(np.clip(np.nan_to_num(x), -1e30, 1e30))
