"""Contract of methods: checkpoints hold all that a method needs, so that resumes and forks repeat a run bit for bit."""

from pathlib import Path
from typing import Annotated

import pytest

from dmlcore.catalogue import Slider
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import build, loop, methods
from dmlcore.training.methods import METHODS, Method
from dmlcore.training.state import TrainingState
from tests.training.resumed import same_to_the_bit, trained

SPEC = RunSpec(device="cpu").with_overrides(
    [
        *("model.hidden=[8]", "model.embedding_dim=12", "model.normalize=false", "batch.samples=4", "batch.classes=4"),
        *("schedule.steps=16", "schedule.validate_every=4", "schedule.checkpoint_every=100", "schedule.keep_every=8"),
        *("schedule.measure_every=2", "optimiser.learning_rate=0.1"),
    ]
)
CONDITIONING = ["conditioning.neighbours=3", "conditioning.after=6", "loss.name=tuplet"]
# settings that switch on the methods with a section of their own
OWN: dict[str, list[str]] = {
    "conditioning": CONDITIONING,
    "ensemble": ["loss.name=wedl", "loss.classifier=off"],
    "neighbourhoods": ["batch.sampler=neighbourhood", "batch.neighbours=3", "batch.balanced_steps=4"],
    "projections": [
        *("loss.name=contrastive_proxy", "loss.per_class=2", "schedule.validate_every=2"),
        *("projection.pool=4", "projection.patience=1"),
    ],
}
# further settings whose state a checkpoint must hold
VARIANTS: dict[str, list[str]] = {
    "continued": [*CONDITIONING, "conditioning.continued=true", "conditioning.order=random", "batch.refresh=3"],
    "compressed": ["loss.name=wedl", "loss.compression=on", "loss.weights_rate=network", "loss.order=update_first"],
    "features": ["loss.name=wel", "loss.classifier_input=features", "loss.order=normalise_first"],
    "scaled": ["model.embedding_scale=0.01"],
}
OTHERS = ("model", "loss", "optimiser", "best", "table")  # prefixes of tensors that no method may use
# The test of the distance from the start needs pretrained weights: test_start_distance.py, test_neighbourhoods.py.
NAMES = [name for name in METHODS if name != "start_distance"]


def spec_of(name: str) -> RunSpec:
    if name in VARIANTS:
        return SPEC.with_overrides(VARIANTS[name])
    return SPEC.with_overrides(OWN[name] if METHODS[name].switch else [f"method.name={name}"])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return RunStore(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module", params=[*NAMES, *VARIANTS])
def whole(request: pytest.FixtureRequest, store: RunStore) -> Run:
    run = trained(store, spec_of(request.param))
    assert request.param in [*VARIANTS, *(entry.name for entry in methods.of(run.spec))]
    return run


def test_a_resume_repeats_the_run(whole: Run, store: RunStore) -> None:
    same_to_the_bit(whole, trained(store, whole.spec, stops=(1, 5, 6, 9)))


def test_another_evaluation_changes_nothing(whole: Run) -> None:
    rows = whole.metrics()
    with whole.lock():
        loop.evaluate(whole)
    assert whole.metrics() == rows


def test_a_fork_without_changes_repeats_the_run(whole: Run, store: RunStore) -> None:
    fork = trained(store, whole.spec.with_overrides([f"fork.run={whole.id}", "fork.step=8"]))
    later = [[row for row in run.metrics()[0] if row["step"] > 8] for run in (whole, fork)]
    assert later[0] == later[1]
    one, two = (checkpoint.load(run.path) for run in (whole, fork))
    assert checkpoint.digest_of(one.tensors) == checkpoint.digest_of(two.tensors)


def test_a_fork_with_another_objective_begins_again(whole: Run, store: RunStore) -> None:
    fork = whole.spec.with_overrides([f"fork.run={whole.id}", "fork.step=8", "batch.samples=3"])
    assert trained(store, fork).status() == "done"


def test_tensors_have_prefixes_and_facts_have_names_of_their_own(whole: Run) -> None:
    state = build.build(whole.spec, build.load_data(whole.spec), build.prepare_device("cpu", 1))
    prefixes = [prefix for method in state.methods for prefix in method.state_tensors()]
    facts = [name for method in state.methods for name in method.facts]
    assert len({*OTHERS, *prefixes}) == len(OTHERS) + len(prefixes)
    assert len({*vars(state.progress), *facts}) == len(vars(state.progress)) + len(facts)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["method.name=nonsense"], "method: unknown method 'nonsense'; known: none"),
        (["method.name=projections"], "method: unknown method 'projections'; known: none"),
        (["method.parameters.k=1"], "method: parameters of no method: k; set method.name, too"),
    ],
)
def test_an_unknown_method_is_refused_before_anything_is_built(overrides: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        build.refuse_unusable(SPEC.with_overrides(overrides))


class Shrunk(Method):
    """Multiplies the gradients of the network by a factor."""

    def __init__(self, state: TrainingState, factor: Annotated[float, Slider(0.1, 1.0, "f", "Factor")] = 0.5) -> None:
        self.factor = factor

    def after_backward(self, state: TrainingState) -> None:
        for parameter in state.model.parameters():
            parameter.grad.mul_(self.factor)


def test_a_method_of_a_plug_in_is_chosen_by_name_with_its_parameters(tmp_path: Path) -> None:
    with METHODS.isolated():
        methods.method("shrunk", title="Shrunk gradients", source="An example, 2026")(Shrunk)
        spec = SPEC.with_overrides(["method.name=shrunk", "method.factor=0"])
        with pytest.raises(SpecError, match="method: shrunk has no hyper-parameter k; it has: factor"):
            build.refuse_unusable(SPEC.with_overrides(["method.name=shrunk", "method.k=1"]))
        saved = checkpoint.load(trained(RunStore(tmp_path), spec.with_overrides(["schedule.steps=2"])).path)
    start = build.build(SPEC, build.load_data(SPEC), build.prepare_device("cpu", 1)).model.state_dict()
    assert all((saved.tensors[f"model.{name}"] == tensor).all() for name, tensor in start.items())
