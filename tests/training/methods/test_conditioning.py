"""Conditioned embedding: neighbours of a sample, trained parameters by stage, and exact resumes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dmlcore.metrics import retrieval
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import RunStore
from dmlcore.training import build, evaluation, loop, methods, starts
from dmlcore.training.batches import Batch
from dmlcore.training.build import TrainingError, load_data
from dmlcore.training.forks import fork_spec
from dmlcore.training.methods.conditioning import Conditioning
from dmlcore.training.neighbours import Conditioned, neighbours
from dmlcore.training.state import TrainingState, embedder
from tests.training.resumed import trained

CPU = torch.device("cpu")
SPEC = RunSpec().with_overrides(
    [
        *("loss.name=tuplet", "model.hidden=[8]", "model.embedding_dim=4", "model.normalize=false"),
        *("conditioning.neighbours=5", "conditioning.after=6", "batch.samples=4", "batch.classes=4"),
        *("schedule.steps=16", "schedule.validate_every=4", "schedule.checkpoint_every=100"),
    ]
)


@pytest.fixture(scope="module")
def data() -> Any:
    return load_data(SPEC)


def begun(data: Any, *overrides: str) -> TrainingState:
    """Return a run at the step at which neighbours are first used."""
    state = build.build(SPEC.with_overrides(overrides), data, CPU)
    state.progress.step = state.spec.conditioning.after
    assert of(state).is_due(state)
    of(state).begin(state)
    assert not of(state).is_due(state)
    state.model.train()
    return state


def of(state: TrainingState) -> Conditioning:
    return methods.get(state, Conditioning)


def weights(state: TrainingState) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in state.model.named_parameters()}


def test_rows_say_which_scores_are_transductive(tmp_path: Path) -> None:
    rows = trained(RunStore(tmp_path), SPEC).metrics()[0]
    (joined,) = (row for row in rows if row["kind"] == "conditioning")
    assert (joined["step"], joined["neighbours"]) == (6, 5)
    assert 0 < joined["same_class"] < 1
    validations = [(row["step"], row.get("transductive", False)) for row in rows if row["kind"] == "validation"]
    assert validations == [(0, False), (4, False), (6, False), (6, True), (8, True), (12, True), (16, True)]
    at_six = [row for row in rows if row["kind"] == "validation" and row["step"] == 6]
    assert joined["from"] in (0, 4, 6)
    assert at_six[1]["alone_map_at_r"] == max(
        row["map_at_r"] for row in rows if row["kind"] == "validation" and "transductive" not in row
    )
    tested = {row["of"]: row for row in rows if row["kind"] == "scores"}
    assert list(tested) == ["inputs", "untrained", "pca_whitened", "whitened", "trained", "alone", "inductive"]
    assert [name for name, row in tested.items() if row.get("transductive")] == ["trained"]
    other = trained(RunStore(tmp_path), SPEC.with_overrides(["conditioning.among=train"])).metrics()[0]
    tested = {row["of"]: row for row in other if row["kind"] == "scores"}
    assert list(tested) == ["inputs", "untrained", "pca_whitened", "whitened", "trained", "alone", "transductive"]
    assert [name for name, row in tested.items() if row.get("transductive")] == ["transductive"]


def test_neighbours_against_a_plain_search() -> None:
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32))
    distances = torch.cdist(points.double(), points.double())
    own = distances.clone().fill_diagonal_(torch.inf).argsort(1)[:, :4].numpy()
    assert (neighbours(points, None, 4) == own).all()
    # the sample itself comes first
    assert (neighbours(points[:7], points, 4) == distances[:7].argsort(1)[:, :4].numpy()).all()
    places = np.array([0, 1, 2, -1, -1])
    listed = neighbours(points[:5], points, 4, places)
    assert (listed[:3] == own[:3]).all()
    assert (listed[3:] == distances[3:5].argsort(1)[:, :4].numpy()).all()
    # Fewer points than neighbours: repeat the last one; a single point is its own neighbour.
    assert (neighbours(points[:3], None, 4)[:, 1:] == neighbours(points[:3], None, 2)[:, [1, 1, 1]]).all()
    assert neighbours(points[:1], None, 2).tolist() == [[0, 0]]
    copies = torch.zeros(6, 2)
    assert neighbours(copies, None, 3)[4].tolist() == [0, 1, 2]  # ties by index
    assert neighbours(copies[:2], copies, 3, np.array([1, -1])).tolist() == [[0, 2, 3], [0, 1, 2]]


def test_what_is_scored_together_moves_transductive_embeddings_alone(data: Any) -> None:
    some = data.splits["test"][:40]
    for among, moves in (("own", True), ("train", False)):
        network = embedder(begun(data, f"conditioning.among={among}"))
        together = evaluation.batches.embed(network, data, some, CPU)
        apart = evaluation.batches.embed(network, data, some[:20], CPU)
        assert np.allclose(together[:20], apart, atol=1e-6) != moves
        others = network.other_embeddings()
        assert set(others) == {"alone", "inductive" if moves else "transductive"}
        np.testing.assert_allclose(others["alone"], evaluation.batches.embed(network.model, data, some[:20], CPU))


def test_a_training_sample_is_never_its_own_neighbour(data: Any) -> None:
    state = begun(data, "conditioning.among=train", "conditioning.by=average")
    train = data.splits["train"]
    listed = of(state).neighbourhood["neighbours"].numpy()
    assert not (listed == np.arange(len(train))[:, None]).any()
    network = embedder(state)
    table = torch.from_numpy(evaluation.batches.embed(state.model, data, train, CPU))
    expected = state.model.condition(torch.cat([table[:9, None], table[listed[:9]]], 1)).detach().numpy()
    embedded = evaluation.batches.embed(network, data, train[:9], CPU)
    np.testing.assert_allclose(embedded, expected, rtol=1e-4, atol=1e-5)
    batch = Batch(train[:9], torch.empty(0), torch.empty(0), None)
    joined = of(state).embeddings(state, 7, table[:9], batch).detach().numpy()
    np.testing.assert_allclose(joined, expected, rtol=1e-4, atol=1e-5)


def test_the_network_is_still_or_goes_on(data: Any) -> None:
    for continued in (False, True):
        state = begun(data, f"conditioning.continued={str(continued).lower()}", "batch.refresh=2")
        before, table = weights(state), of(state).neighbourhood["table"].clone()
        for number in (7, 8):
            loop.step(state, number)
        assert torch.equal(of(state).neighbourhood["table"], table)
        loop.step(state, 9)
        moved = {name for name, tensor in weights(state).items() if not torch.equal(tensor, before[name])}
        own = {name for name in before if name.startswith("conditioning.")}
        assert own
        assert moved == (set(before) if continued else own)
        assert torch.equal(of(state).neighbourhood["table"], table) != continued


def test_before_neighbours_join_in_a_run_is_what_it_is_without_them(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    plain = trained(store, SPEC.with_overrides(["conditioning.neighbours=0"])).metrics()[0]
    rows = trained(store, SPEC).metrics()[0]
    assert [row for row in rows if row["kind"] == "step" and row["step"] <= 6] == [
        row for row in plain if row["kind"] == "step" and row["step"] <= 6
    ]


def test_the_mean_is_that_of_the_network_after_all_its_steps(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    averaged = trained(store, SPEC.with_overrides(["conditioning.by=mean", "conditioning.after=16"]))
    state = starts.load_for_evaluation(averaged)
    alone = evaluation.embed(state.model, state.data, "test", CPU).astype(np.float64)
    listed = neighbours(torch.from_numpy(alone), None, 5)
    mean = (alone + alone[listed].sum(1)) / 6
    labels = state.data.labels[state.data.splits["test"]]
    scores = averaged.scores()
    assert scores["trained"]["map_at_r"] == pytest.approx(retrieval(mean, labels, ks=(1,)).map_at_r, abs=1e-4)
    assert scores["alone"]["map_at_r"] == pytest.approx(retrieval(alone, labels, ks=(1,)).map_at_r, abs=1e-4)


def test_dropout_is_off_where_a_set_is_embedded_also_over_a_frozen_backbone() -> None:
    spec = RunSpec().with_overrides(
        [
            *("data.name=glyphs", "model.name=conv4_32", "model.embedding_dim=6", "model.freeze=backbone"),
            *("conditioning.neighbours=3", "loss.name=tuplet", "data.augment=false"),
        ]
    )
    data = load_data(spec)
    state = build.build(spec, data, CPU)
    state.model.conditioning.train()  # type: ignore[union-attr]
    points = torch.randn(5, 4, 6)
    with evaluation.batches.evaluation_mode(Conditioned(state.model, spec, data, CPU)):
        assert torch.equal(state.model.condition(points), state.model.condition(points))
    state.model.train()
    assert not torch.equal(state.model.condition(points), state.model.condition(points))


def test_a_fork_goes_on_with_its_parents_neighbours_or_with_those_that_are_left(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    parent = trained(store, SPEC.with_overrides(["schedule.keep_every=8"]))
    same = trained(store, fork_spec.create(parent, 8))
    assert same.scores()["trained"] == parent.scores()["trained"]
    fewer = trained(store, fork_spec.create(parent, 8, leave_out=[0]))
    saved = checkpoint.load(fewer.path)
    listed = saved.tensors["neighbourhood.neighbours"]
    data = starts.load_for_evaluation(fewer).data
    assert len(listed) == len(data.splits["train"])
    assert int(listed.max()) < len(listed)
    with pytest.raises(SpecError, match=r"conditioning\.order"):
        fork_spec.create(parent, 8, ["conditioning.order=furthest"])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["conditioning.after=17"], r"conditioning\.after: must be at most schedule\.steps = 16, got 17"),
        (["conditioning.by=mean"], r"conditioning\.by: the mean has no parameters to train"),
        (["schedule.patience=3"], r"schedule\.patience"),
        (["loss.name=contrastive", "loss.memory=2"], r"loss\.memory"),
        (["loss.name=contrastive_proxy", "projection.pool=12"], r"projection\.pool"),
    ],
)
def test_what_does_not_go_together_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        SPEC.with_overrides(overrides)


def test_what_cannot_be_made_is_refused(data: Any) -> None:
    with pytest.raises(TrainingError, match=r"conditioning\.neighbours: 1024 exceed the other \d+ samples"):
        build.build(SPEC.with_overrides(["conditioning.neighbours=1024"]), data, CPU)
    with pytest.raises(TrainingError, match=r"conditioning\.neighbours: wedl combines"):
        build.build(SPEC.with_overrides(["loss.name=wedl"]), data, CPU)


@pytest.mark.parametrize("among", ["own", "train"])
def test_a_sample_of_no_set_has_its_neighbours_where_scored_ones_have(data: Any, among: str) -> None:
    """For example for an image of the user, which is compared with the test split."""
    network = embedder(begun(data, f"conditioning.among={among}", "conditioning.by=mean", "conditioning.after=16"))
    split = data.splits["test" if among == "own" else "train"]
    pool = torch.from_numpy(evaluation.batches.embed(network.model, data, split, CPU))
    inputs = evaluation.batches.to_device(data, data.splits["validation"][:3], CPU)
    with evaluation.batches.evaluation_mode(network):
        alone, embedded = network.model(inputs), network(inputs)
    nearest = torch.cdist(alone.double(), pool.double()).argsort(1)[:, :5]
    torch.testing.assert_close(embedded, (alone + pool[nearest].sum(1)) / 6)


def test_the_network_computes_in_bfloat16_and_the_lstm_in_float32(data: Any) -> None:
    state = begun(data, "compute.precision=bfloat16")
    assert of(state).neighbourhood["table"].dtype == torch.float32
    loss = loop.step(state, 7)
    assert loss.dtype == torch.float32
    assert state.last_batch[0].dtype == torch.float32
