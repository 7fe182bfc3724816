import math

import pytest
import torch
from torch import nn

from dmlcore.data import Dataset
from dmlcore.models import networks
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import ScheduleSpec
from dmlcore.training import build, loop, optimisers
from dmlcore.training.build import TrainingError
from dmlcore.training.state import TrainingState

CPU = torch.device("cpu")
BASE = RunSpec().with_overrides(["model.hidden=[16]", "batch.classes=4", "batch.samples=4"])


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return build.load_data(BASE)


def bench(digits: Dataset, *overrides: str) -> TrainingState:
    return build.build(BASE.with_overrides(overrides), digits, CPU)


def network(**changes: object) -> nn.Module:
    spec = RunSpec().model.model_copy(update={"name": "resnet20", **changes})
    return networks.build(spec, (3, 32, 32), seed=0)


def groups(spec: RunSpec, model: nn.Module, loss: nn.Module) -> dict[int, dict]:
    """Return the group of each parameter by its id; fail if a parameter is in two groups or in none."""
    optimiser = optimisers.create(spec, model, loss)
    found = [(id(p), group) for group in optimiser.param_groups for p in group["params"]]
    everything = [id(p) for p in (*model.parameters(), *loss.parameters())]
    assert sorted(key for key, _ in found) == sorted(everything)
    return dict(found)


def test_all_parameters_that_are_alike_share_one_group_in_the_order_of_the_model() -> None:
    model, loss = network(), nn.Linear(2, 3)
    optimiser = optimisers.create(RunSpec(), model, loss)
    (group,) = optimiser.param_groups
    assert [id(p) for p in group["params"]] == [id(p) for p in (*model.parameters(), *loss.parameters())]


def test_head_and_loss_have_rates_of_their_own() -> None:
    model, loss = network(), nn.Linear(2, 3)
    spec = RunSpec().with_overrides(
        ["optimiser.learning_rate=0.01", "optimiser.head_factor=10", "loss.learning_rate=0.5"]
    )
    found = groups(spec, model, loss)
    head = {id(p) for p in model.head_parameters()}
    assert {found[id(p)]["lr"] for p in model.parameters() if id(p) in head} == {0.1}
    assert {found[id(p)]["lr"] for p in model.parameters() if id(p) not in head} == {0.01}
    assert {found[id(p)]["lr"] for p in loss.parameters()} == {0.5}
    rates = optimisers.learning_rates(optimisers.create(spec, model, loss))
    assert rates == {"learning_rate": 0.01, "head_learning_rate": 0.1, "loss_learning_rate": 0.5}


def test_batch_norm_and_biases_can_be_spared_the_weight_decay() -> None:
    model = network()
    spec = RunSpec().with_overrides(["optimiser.weight_decay=0.01", "optimiser.decay_batch_norm=false"])
    found = groups(spec, model, nn.Module())
    for name, parameter in model.named_parameters():
        spared = name.endswith("bias") or parameter.ndim == 1
        assert found[id(parameter)]["weight_decay"] == (0.0 if spared else 0.01), name


@pytest.mark.parametrize(
    ("overrides", "kind", "expected"),
    [
        (["optimiser.name=sgd", "optimiser.momentum=0.5"], torch.optim.SGD, {"momentum": 0.5}),
        (["optimiser.name=adam", "optimiser.epsilon=0.1"], torch.optim.Adam, {"eps": 0.1}),
        (["optimiser.name=adamw", "optimiser.epsilon=0.1"], torch.optim.AdamW, {"eps": 0.1}),
        (["optimiser.name=rmsprop", "optimiser.epsilon=0.1"], torch.optim.RMSprop, {"eps": 0.1}),
    ],
)
def test_the_settings_reach_the_optimiser(overrides: list[str], kind: type, expected: dict[str, float]) -> None:
    made = optimisers.create(RunSpec().with_overrides(overrides), nn.Linear(2, 2), nn.Module())
    assert type(made).__base__ is kind
    assert {name: made.param_groups[0][name] for name in expected} == expected


def test_rates_are_a_function_of_step_and_plateaus(digits: Dataset) -> None:
    step = ScheduleSpec(decay="step", decay_every=10, decay_factor=0.1)
    assert [loop.decay(step, s) for s in (1, 10, 11, 20, 21)] == pytest.approx([1, 1, 0.1, 0.1, 0.01])
    cosine = ScheduleSpec(decay="cosine", steps=100)
    expected = [0.5 * (1 + math.cos(math.pi * share)) for share in (0, 0.25, 0.5, 0.99)]
    assert [loop.decay(cosine, s) for s in (1, 26, 51, 100)] == pytest.approx(expected)
    state = bench(digits, "schedule.decay=step", "schedule.decay_every=10", "schedule.plateau_factor=0.3")
    state.progress.halvings = 2
    loop.step(state, 11)
    assert optimisers.learning_rates(state.optimiser) == pytest.approx({"learning_rate": 1e-3 * 0.1 * 0.09})


def test_the_gradient_is_clipped_by_norm_then_by_value() -> None:
    layer = nn.Linear(3, 1, bias=False)
    optimiser = optimisers.create(RunSpec(), layer, nn.Module())
    for override, expected in (
        ("clip_norm=2.5", [0.0, 1.5, 2.0]),
        ("clip_value=3.5", [0.0, 3.0, 3.5]),
        ("clip_norm=100", [0.0, 3.0, 4.0]),
    ):
        layer.weight.grad = torch.tensor([[0.0, 3.0, 4.0]])
        norm = nn.utils.get_total_norm(loop.gradients_of(optimiser))
        optimisers.clip(optimiser, RunSpec().with_overrides([f"optimiser.{override}"]).optimiser, norm)
        assert layer.weight.grad.tolist()[0] == pytest.approx(expected, rel=1e-5)


def test_warm_up_trains_what_is_new_alone(digits: Dataset) -> None:
    made = bench(digits, "schedule.warm_up=2", "loss.name=proxy_nca")
    new = {id(p) for p in (*made.model.head_parameters(), *made.loss.parameters())}
    for step in (1, 2, 3):
        before = {id(p): p.detach().clone() for p in optimisers.parameters(made.optimiser)}
        loop.step(made, step)
        moved = {
            key
            for key, p in before.items()
            for q in optimisers.parameters(made.optimiser)
            if id(q) == key
            if not torch.equal(p, q)
        }
        assert moved == (new if step < 3 else set(before))


def test_the_warm_up_leaves_frozen_batch_norm_frozen() -> None:
    model = network(freeze_batch_norm=True)
    frozen = {id(p) for p in model.parameters() if not p.requires_grad}
    assert frozen
    at_first = {id(p) for p in optimisers.frozen_at_first(ScheduleSpec(warm_up=1), model)}
    assert at_first
    assert not at_first & frozen


def test_warm_up_needs_something_new() -> None:
    spec = RunSpec().with_overrides(
        ["data.name=tokens", "model.name=tokens", "model.embedding_dim=2", "batch.classes=4", "schedule.warm_up=3"]
    )
    with pytest.raises(TrainingError, match=r"schedule\.warm_up: this network has no new layers"):
        build.build(spec, build.load_data(spec), CPU)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_fused_kernels_take_the_same_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def trained() -> tuple[bool, torch.Tensor]:
        torch.manual_seed(0)
        layer = nn.Linear(8, 8)
        optimiser = optimisers.create(RunSpec().with_overrides([f"optimiser.name={name}"]), layer, nn.Module())
        for _ in range(3):
            optimiser.zero_grad()
            layer(torch.ones(2, 8)).square().sum().backward()
            optimiser.step()
        return optimisers.is_fused(optimiser), layer.weight.detach()

    plain = trained()
    monkeypatch.setattr(optimisers, "LARGE", 1)
    fused = trained()
    assert (plain[0], fused[0]) == (False, True)
    assert torch.allclose(plain[1], fused[1], rtol=1e-5)
