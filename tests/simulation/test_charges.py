"""The simulation: forces are the gradients of the library, histories are reproducible bit by bit, all values finite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dmlcore import losses, mining
from dmlcore.geometry import Triplet
from dmlcore.metrics import retrieval
from dmlcore.simulation import REACH, STARTS, STRIDE, Change, Dynamics, Simulation, Spec
from tests.members import in_one_case

SMALL = Spec(classes=3, per_class=6, seed=1)


def law(**given) -> Spec:
    return replace(SMALL, law=Dynamics(**given))


def same(a, b) -> bool:
    """Return True if two frames are equal in every bit."""
    mine, other = vars(a), vars(b)
    return all(
        np.array_equal(mine[k], other[k]) if isinstance(mine[k], np.ndarray) else mine[k] == other[k] for k in mine
    )


def gradient(spec: Spec, positions: np.ndarray, labels: np.ndarray, mined=None) -> torch.Tensor:
    x = torch.from_numpy(positions).clone().requires_grad_()
    loss = spec.law.module()
    loss(x, torch.from_numpy(labels), mined).backward()
    return x.grad


@in_one_case(name=losses.names())
def test_the_force_is_minus_n_times_the_gradient_of_the_loss(name):
    # a low power keeps the strongest push of a potential field below the limit of 100
    simulation = Simulation(law(loss=name, hyper={"alpha": 0.5} if name == "potential" else {}))
    frame = simulation.frame(0)
    expected = -len(frame.positions) * gradient(simulation.spec, frame.positions, simulation.labels)
    assert np.allclose(frame.force, expected, rtol=1e-5, atol=1e-5)
    loss = simulation.spec.law.module()
    value = loss(torch.from_numpy(frame.positions), torch.from_numpy(simulation.labels))
    assert frame.loss == pytest.approx(value.item(), rel=1e-6)
    assert frame.active == loss.counts.active / loss.counts.valid


@in_one_case(s=[-0.5, -1.0, -2.0, -3.0])
def test_charges_with_a_decaying_pull_obey_its_law_and_stay_finite(s):
    simulation = Simulation(law(hyper={"s": s, "r": 0.0, "rho": 1.0, "m1": 50.0, "m2": None}, side="pull"))
    frame = simulation.frame(0)
    x = frame.positions.astype(np.float64)
    same = (simulation.labels[:, None] == simulation.labels) & ~np.eye(len(x), dtype=bool)
    apart = x[None] - x[:, None]
    d = np.where(same, np.linalg.norm(apart, axis=-1), 1.0)
    per_pair = 2 * (len(x) - simulation.spec.per_class)  # triplets (a, p, n) and (p, a, n) of every negative
    pull = (np.where(same, d ** (s - 1), 0.0)[..., None] * apart).sum(1) * per_pair * len(x) / frame.triplets
    short = np.linalg.norm(pull, axis=1) < 99  # longer forces are cut to 100
    assert short.sum() > len(x) / 2
    np.testing.assert_allclose(frame.force[short], pull[short], rtol=1e-3, atol=1e-3)
    for step in range(1, 40):
        later = simulation.frame(step)
        assert np.isfinite(later.positions).all()
        assert np.isfinite(later.force).all()


@in_one_case(miner=mining.on_distances())
def test_a_miner_chooses_the_triplets(miner):
    simulation = Simulation(law(loss="facenet", miner=miner, hyper={"m": 0.5}))
    frame = simulation.frame(0)
    x = torch.from_numpy(frame.positions)
    mined = mining.MINERS[miner](torch.cdist(x, x), torch.from_numpy(simulation.labels))
    expected = -len(x) * gradient(simulation.spec, frame.positions, simulation.labels, mined)
    assert frame.triplets == len(mined[0]) > 0
    assert np.allclose(frame.force, expected, rtol=1e-4, atol=1e-5)


@in_one_case(name=["ranking", "facenet", "distance_sensitive", "lifted"])
def test_pull_and_push_are_means_over_the_active_triplets(name):
    simulation = Simulation(replace(law(loss=name), classes=2, per_class=3))
    frame, labels, loss = simulation.frame(0), simulation.labels, simulation.spec.law.module()
    x = torch.from_numpy(frame.positions).double()
    pulls, pushes = [], []
    for a in range(6):
        for p in range(6):
            for n in range(6):
                if a == p or labels[a] != labels[p] or labels[a] == labels[n]:
                    continue
                d = {
                    k: torch.dist(x[i], x[j]).requires_grad_() for k, i, j in (("ap", a, p), ("an", a, n), ("pn", p, n))
                }
                raw = loss.raw_of(Triplet(d.__getitem__, lambda _: torch.ones((), dtype=torch.float64), loss.floor))
                if not 0 < raw < loss.m2:
                    continue
                g = torch.autograd.grad(raw, list(d.values()), allow_unused=True, materialize_grads=True)
                pulls.append(g[0].item())
                pushes.append(-g[1].item() - g[2].item())
    assert len(pulls) > 3
    assert frame.pull == pytest.approx(np.mean(pulls), rel=1e-4)
    assert frame.push == pytest.approx(np.mean(pushes), rel=1e-4)


def test_the_sides_add_up_and_each_does_what_it_says():
    sides = {side: Simulation(law(side=side)) for side in ("both", "pull", "push")}
    force = {side: simulation.frame(0).force for side, simulation in sides.items()}
    assert np.allclose(force["pull"] + force["push"], force["both"], atol=1e-5)
    labels = torch.from_numpy(sides["both"].labels)

    def spread(frame, same_class: bool) -> float:
        d = torch.cdist(*2 * [torch.from_numpy(frame.positions)])
        return d[(labels[:, None] == labels) == same_class].mean().item()

    pulled, pushed = sides["pull"], sides["push"]
    assert spread(pulled.frame(10), True) < spread(pulled.frame(0), True)
    assert spread(pushed.frame(10), False) > spread(pushed.frame(0), False)


@pytest.mark.parametrize(
    ("optimiser", "extra"),
    [
        ("sgd", {}),
        ("momentum", {"normalise": "project"}),
        ("rmsprop", {"loss": "npairs", "miner": "semi_hard"}),
        ("adam", {"loss": "npairs", "miner": "semi_hard", "normalise": "project"}),
    ],
)
def test_a_history_repeats_to_the_last_bit(optimiser, extra):
    spec = law(optimiser=optimiser, step_size=0.02, **extra)
    first, second = Simulation(spec), Simulation(spec)
    first.frame(15)
    assert all(same(first.frame(k), second.frame(k)) for k in range(16))
    other = Simulation(replace(spec, seed=2))
    assert not np.array_equal(other.frame(0).positions, first.frame(0).positions)


def test_a_step_is_the_optimisers_own():
    simulation = Simulation(law(optimiser="adam", step_size=0.02))
    x = torch.nn.Parameter(torch.from_numpy(simulation.frame(0).positions.copy()))
    adam = torch.optim.Adam([x], lr=0.02)
    for k in range(5):
        x.grad = -torch.from_numpy(simulation.frame(k).force)
        adam.step()
        assert np.allclose(simulation.frame(k + 1).positions, x.detach(), atol=1e-6)


CHANGES = (
    Change(4, Dynamics(loss="ranking", hyper={"m": 0.5}, optimiser="adam", step_size=0.02)),
    Change(7, None, ((2, 0.5, -0.5),)),
    Change(7, Dynamics(loss="ranking", optimiser="adam", step_size=0.05)),
    Change(9, Dynamics(normalise="renormalise")),
)


# Adam has the largest optimiser state: test it with each change, and each other optimiser with one or two.
@pytest.mark.parametrize(
    ("at", "optimiser"),
    [*((at, "adam") for at in range(len(CHANGES))), *enumerate(["sgd", "momentum", "rmsprop", "momentum"])],
)
def test_a_fork_is_what_would_have_been_computed_from_the_start(optimiser, at):
    parent = Simulation(replace(law(optimiser=optimiser, step_size=0.02), changes=CHANGES[:at]))
    parent.frame(12)
    spec = replace(parent.spec, changes=CHANGES[: at + 1])
    fork, fresh = parent.forked(spec), Simulation(spec)
    assert len(fork.frames) == CHANGES[at].at == parent.shared_with(spec)
    assert all(same(fork.frame(k), fresh.frame(k)) for k in range(16))
    assert not np.array_equal(fork.frame(14).positions, parent.frame(14).positions)


def test_a_moved_point_lies_where_it_was_laid():
    simulation = Simulation(replace(SMALL, changes=(Change(3, None, ((2, 0.5, -0.5),)),)))
    assert simulation.frame(3).positions[2].tolist() == [0.5, -0.5]
    assert np.array_equal(
        np.delete(simulation.frame(3).positions, 2, 0), np.delete(Simulation(SMALL).frame(3).positions, 2, 0)
    )


@pytest.mark.parametrize("normalise", ["renormalise", "project"])
def test_normalised_points_stay_on_the_circle(normalise):
    simulation = Simulation(law(normalise=normalise, loss="facenet", hyper={"m": 0.5}))
    for k in range(8):
        frame = simulation.frame(k)
        assert np.allclose(np.linalg.norm(frame.positions, axis=1), 1, atol=1e-6)
    if normalise == "project":
        assert np.abs((frame.force * frame.positions).sum(1)).max() < 1e-4
    assert simulation.frame(7).largest_step > 0


# Each loss has its own poles at coincident points, so each is tested from a heap; the other starts alternate.
HEAPS = ["collapsed"]
SPREAD = [start for start in STARTS if start not in HEAPS]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        (name, start)
        for i, name in enumerate(losses.names())
        for start in (*HEAPS, SPREAD[i % len(SPREAD)], SPREAD[(i + 2) % len(SPREAD)])
    ],
)
def test_every_loss_stays_finite_and_bounded_from_every_start(name, start):
    hyper = {"m2": float("inf")} if "m2" in losses.formula(name).parameters else {}
    simulation = Simulation(replace(law(loss=name, hyper=hyper, step_size=1.0), start=start, per_class=4))
    for k in range(12):
        frame = simulation.frame(k)
        numbers = [v for v in vars(frame).values() if not isinstance(v, np.ndarray)]
        assert all(np.isfinite(numbers))
        assert np.isfinite(frame.force).all()
        assert np.abs(frame.positions).max() <= REACH
        assert frame.largest_step <= STRIDE * 1.001


def test_exactly_coincident_points_feel_nothing_and_stay_finite():
    heap = tuple((i, 0.0, 0.0) for i in range(18))
    for name in losses.names():
        frame = Simulation(replace(law(loss=name), changes=(Change(0, None, heap),))).frame(3)
        assert np.isfinite(frame.positions).all(), name


def test_the_upper_clamp_can_hold_a_collapse_for_ever():
    held = Simulation(replace(SMALL, start="collapsed"))
    assert held.frame(5).active == 0
    assert held.frame(5).largest_step == 0
    free = Simulation(replace(law(hyper={"m2": float("inf")}), start="collapsed"))
    assert free.frame(5).radii.max() > 3 * held.frame(5).radii.max()


def test_training_separates_the_classes():
    simulation = Simulation(law(loss="ranking", hyper={"m": 0.3}, step_size=0.1))
    before, after = simulation.frame(0), simulation.frame(60)
    assert after.loss < 0.1 * before.loss
    assert after.map_at_r > 0.95 > before.map_at_r
    scores = retrieval(after.positions, simulation.labels)
    assert after.map_at_r == pytest.approx(scores.map_at_r)
    for c, radius in enumerate(after.radii):
        own = after.positions[simulation.labels == c]
        assert radius == pytest.approx(np.linalg.norm(own - own.mean(0), axis=1).max(), abs=1e-6)


def test_steps_out_of_range_are_refused():
    with pytest.raises(ValueError, match="step"):
        Simulation(SMALL).frame(-1)


@pytest.mark.parametrize(("loss", "unites"), [("modified_entangle", False), ("ranking", True)])
def test_negatives_hold_a_divided_class_apart_where_their_push_exceeds_the_pull(loss, unites):
    """Can 2018, Fig. 2.6."""
    simulation = Simulation(Spec(start="divided", classes=2, per_class=8, law=Dynamics(loss)))

    def gap(step: int) -> float:
        first = simulation.frame(step).positions[:8]
        return float(np.linalg.norm(first[::2].mean(0) - first[1::2].mean(0)))

    assert (gap(200) < gap(0) / 2) == unites
    assert (gap(200) > 2 * gap(0)) != unites
    assert (simulation.frame(200).map_at_r > 0.99) == unites
