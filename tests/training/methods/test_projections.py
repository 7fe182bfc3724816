"""Chance-constrained programming: the pull, the end of a projection, its results, and exact resumes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dmlcore.geometry import covering_radius, k_center
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import RunStore
from dmlcore.training import build, loop, methods
from dmlcore.training.batches import embed
from dmlcore.training.build import TrainingError, load_data
from dmlcore.training.methods.projections import Projections, proxies_of
from dmlcore.training.state import TrainingState
from tests.training.resumed import trained

CPU = torch.device("cpu")
SPEC = RunSpec().with_overrides(
    [
        *("loss.name=contrastive_proxy", "loss.per_class=3", "loss.batch_pairs=0.1", "loss.learning_rate=0.05"),
        *("model.hidden=[8]", "model.embedding_dim=4", "model.normalize=false", "model.lipschitz=true"),
        *("projection.pool=5", "projection.patience=2", "projection.weight=0.5", "batch.samples=4", "batch.classes=4"),
        *("schedule.steps=24", "schedule.validate_every=2", "schedule.checkpoint_every=100"),
        *("schedule.covering_every=8", "schedule.measure_every=1"),
    ]
)

JUMPY = SPEC.with_overrides(["optimiser.learning_rate=0.3"])  # so that validation scores fall and projections end


@pytest.fixture(scope="module")
def data() -> Any:
    return load_data(SPEC)


def make_state(data: Any, *overrides: str) -> TrainingState:
    state = build.build(SPEC.with_overrides(overrides), data, CPU)
    of(state).begin(state)
    state.model.train()
    return state


def of(state: TrainingState) -> Projections:
    return methods.get(state, Projections)


def judged(state: TrainingState, *scores: float) -> list[dict[str, Any]]:
    """Return the rows of projections that these validations end."""
    rows = []
    for score in scores:
        rows += of(state).after_step(state, [{"kind": "validation", "step": 0, "map_at_r": score}])
    return rows


def test_the_pull_is_the_gradient_of_the_proximal_term(data: Any) -> None:
    state = make_state(data)
    free = make_state(data)
    of(state).anchor = {name: p.detach() + 0.3 for name, p in state.model.named_parameters()}
    loop.step(state, 1)
    loop.step(free, 1)
    for name, parameter in free.model.named_parameters():
        begin = dict(make_state(data).model.named_parameters())[name].detach().requires_grad_()
        term = SPEC.projection.weight / 2 * (begin - of(state).anchor[name]).square().sum()
        expected = parameter.grad + torch.autograd.grad(term, begin)[0]
        mine = dict(state.model.named_parameters())[name].grad
        torch.testing.assert_close(mine, expected, rtol=1e-5, atol=1e-7)
    assert torch.equal(state.loss.metric.proxies.grad, free.loss.metric.proxies.grad)  # which the pull excludes


def test_a_projection_ends_when_patience_does_and_holds_on_to_its_best(data: Any) -> None:
    state = make_state(data)
    loop.step(state, 1)
    assert judged(state, 0.30, 0.30 + 0.9e-5) == []
    loop.step(state, 2)
    assert judged(state, 0.31) == []
    best = {name: p.detach().clone() for name, p in state.model.named_parameters()}
    proxies = state.loss.metric.proxies.detach().clone()
    loop.step(state, 3)
    running = {name: p.detach().clone() for name, p in state.model.named_parameters()}
    assert of(state).measured(state) == {}
    (row,) = judged(state, 0.25, 0.31)
    assert (row["projection"], row["score"], of(state).projection) == (1, 0.31, 2)
    assert of(state).projection_score is None
    assert all(torch.equal(of(state).anchor[name], best[name]) for name in best)
    # training continues from the current weights
    assert all(torch.equal(p, running[name]) for name, p in state.model.named_parameters())
    assert not torch.equal(state.loss.metric.proxies, proxies)
    assert state.loss.metric.proxies not in state.optimiser.state
    assert of(state).measured(state)["projection_distance"].item() == pytest.approx(
        sum(float((running[name] - best[name]).square().sum()) for name in best) ** 0.5, rel=1e-5
    )


def test_new_proxies_are_the_farthest_of_the_pool_from_the_best_ones(data: Any) -> None:
    state = make_state(data)
    judged(state, 0.3)
    best = proxies_of(state).detach().clone()
    loop.step(state, 1)
    pools = of(state).pools(state)
    (row,) = judged(state, 0.2, 0.2)
    before, after = [], []
    for label, pool in pools.items():
        assert pool.shape == (5, 4)
        picked = pool[k_center(pool, best[label].double().numpy(), 3)]
        np.testing.assert_allclose(proxies_of(state)[label].detach(), picked, rtol=1e-6)
        before.append(covering_radius(pool, best[label].double().numpy()))
        after.append(covering_radius(pool, picked))
    assert row["radius_before"] == pytest.approx(np.mean(before), rel=1e-6)
    assert row["radius_after"] == pytest.approx(np.mean(after), rel=1e-6)
    assert sorted(pools) == sorted(set(data.labels[data.splits["train"]].tolist()))


def test_a_pool_is_of_its_class_and_drawn_anew_in_each_projection(data: Any) -> None:
    state = make_state(data)
    train = data.splits["train"]
    points = embed(state.model, data, train, CPU)
    first = of(state).pools(state)
    for label, pool in first.items():
        own = points[data.labels[train] == label]
        nearest = np.linalg.norm(pool[:, None] - own[None], axis=-1).min(1)
        assert nearest.max() < 1e-5
    of(state).projection = 2
    assert not np.array_equal(of(state).pools(state)[0], first[0])


def test_first_proxies_are_samples_at_random_or_the_most_spread(data: Any) -> None:
    random, spread = make_state(data), make_state(data, "projection.first=spread")
    pools = of(random).pools(random)
    for label, pool in pools.items():
        np.testing.assert_allclose(proxies_of(random)[label].detach(), pool[:3], rtol=1e-6)
        longest = pool[np.linalg.norm(pool, axis=1).argmax()]
        np.testing.assert_allclose(proxies_of(spread)[label][0].detach(), longest, rtol=1e-6)


def test_classes_that_a_fold_holds_out_push_nothing() -> None:
    spec = SPEC.with_overrides(["data.split=classes", "data.validation=classes", "data.folds=2", "data.fold=2"])
    spec = spec.with_overrides(["batch.classes=2"])
    data = load_data(spec)
    state = build.build(spec, data, CPU)
    of(state).begin(state)
    absent = set(range(state.loss.metric.classes)) - set(data.labels[data.splits["train"]].tolist())
    assert absent
    before = proxies_of(state)[list(absent)].detach().clone()
    loop.step(state, 1)
    assert torch.equal(proxies_of(state)[list(absent)], before)


def test_a_fork_with_another_objective_counts_projections_again(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    parent = trained(store, JUMPY.with_overrides(["schedule.keep_every=1"]))
    ended = next(row["step"] for row in parent.metrics()[0] if row["kind"] == "projection")
    changes = [f"fork.run={parent.id}", f"fork.step={ended + 1}", "projection.weight=0.1"]
    other = trained(store, parent.spec.with_overrides(changes))
    numbers = [row["projection"] for row in other.metrics()[0] if row["kind"] == "projection"]
    saved = checkpoint.load(other.path)
    assert numbers == list(range(1, saved.facts["projection"]))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["loss.name=proxy_nca", "loss.batch_pairs=0"], "projection.pool: needs a loss of pairs with proxies"),
        (["projection.pool=2"], "projection.pool: 3 proxies cannot be selected from 2 samples"),
        (["projection.pool=0", "loss.name=contrastive"], "loss.batch_pairs: needs a loss of pairs with proxies"),
        (["data.validation=none"], "projection.pool: needs a validation split"),
        (["model.normalize=true"], "model.lipschitz: normalised embeddings are already inside the unit ball"),
    ],
)
def test_what_cannot_be_projected_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises((TrainingError, SpecError), match=message):
        build.refuse_unusable(SPEC.with_overrides(overrides))
