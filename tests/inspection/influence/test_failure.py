"""Replayed steps equal those of the run bit by bit, and the stored result lists harmful and helpful samples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore.inspection import neighbours as learned
from dmlcore.inspection.failure.answers import Question
from dmlcore.inspection.failure.one_step import failures, neighbours
from dmlcore.inspection.influence import failure, retrace
from dmlcore.inspection.influence.retrace import Stretch
from dmlcore.storage import checkpoint, run_directory
from dmlcore.storage.runs import Run, RunError
from dmlcore.training.batches import to_device
from tests.pages.conftest import make_run

IMAGES = [
    *("data.name=digits_pictures", "data.split=classes", "data.crop=affine", "model.name=conv4_32", "batch.classes=4"),
    *("batch.samples=2", "loss.name=multi_similarity", "schedule.steps=4", "schedule.validate_every=4"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    small = ["batch.classes=5", "batch.samples=4"]  # each step needs one backward pass per triplet and sample
    return make_run(tmp_path_factory.mktemp("runs"), *small, "data.validation=none", "schedule.keep_every=3")


def worst(run: Run, count: int) -> list[tuple[int, int, int]]:
    found = learned.read(run.embeddings())
    rows = [(q, neighbours(found, q, right=True)[0], neighbours(found, q, right=False)[0]) for q in failures(found)]
    return [tuple(int(found.indices[row]) for row in triplet) for triplet in rows[:count]]


def retraced(run: Run, triplets: list[tuple[int, int, int]], most: int):
    """Return the influence and the state after the last step."""
    states = []

    def cases(state):
        states.append(state)
        return to_device(state.data, np.array(triplets).T.ravel(), state.device)

    return retrace.influence(run, cases, most=most), states[0]


def test_a_small_run_is_led_through_bit_for_bit(run: Run) -> None:
    triplets = worst(run, 2)
    whole, state = retraced(run, triplets, 400)
    saved = checkpoint.load(run.path)
    for name, tensor in checkpoint.select_prefix(saved.tensors, "model").items():
        assert torch.equal(state.model.state_dict()[name], tensor), name
    assert (whole.steps, whole.begin, whole.end) == (8, 0, 8)
    assert np.array_equal(whole.samples, np.sort(state.data.splits["train"]))
    alone, _ = retraced(run, triplets[1:], 400)
    assert alone.influence[0] == pytest.approx(whole.influence[1], abs=1e-6)
    some, _ = retraced(run, triplets[1:], 3)
    assert some.steps == 3  # steps 1, 4 and 7, each with weight 3
    assert 0 < np.count_nonzero(some.influence) < np.count_nonzero(alone.influence)


def test_a_run_without_kept_checkpoints_is_led_through_from_its_seed(tmp_path: Path) -> None:
    plateau = ["schedule.plateau=1", "schedule.validate_every=2", "optimiser.name=adamw", "optimiser.learning_rate=0.5"]
    run = make_run(tmp_path, *plateau)
    saved = checkpoint.load(run.path)
    # the learning rate was halved before the last steps
    assert (saved.facts["best_step"], saved.facts["halvings"]) == (8, 1)
    whole, state = retraced(run, worst(run, 1), 400)
    assert whole.end == saved.facts["best_step"]
    for name, tensor in checkpoint.select_prefix(saved.tensors, "best").items():
        assert torch.equal(state.model.state_dict()[name], tensor), name


def test_a_network_with_a_backbone_is_asked_at_its_checkpoints(tmp_path: Path) -> None:
    run = make_run(tmp_path, *IMAGES, "schedule.keep_every=2", "data.validation=none")
    whole, state = retraced(run, worst(run, 1), 400)
    saved = checkpoint.load(run.path)
    for name, tensor in checkpoint.select_prefix(
        saved.tensors, "model"
    ).items():  # including the running statistics of batch norm
        assert torch.equal(state.model.state_dict()[name], tensor), name
    assert whole.steps == 4


def test_steps_are_spread_over_the_checkpoints_up_to_the_tested_weights(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {step: Path(f"{step:08}.ckpt") for step in (0, 100, 200)}
    monkeypatch.setattr(run_directory, "kept_checkpoints", lambda folder: paths)
    frozen = run.spec.with_overrides(["model.name=conv4_32", "model.freeze=backbone"])
    image = Run(run.path)
    image.__dict__["spec"] = frozen.with_overrides(["model.freeze=none"])
    assert retrace.stretches(image, 150, 30) == [
        Stretch(0, paths[0], 20, 1, 5.0),
        Stretch(100, paths[100], 110, 1, 5.0),
    ]
    assert retrace.stretches(image, 100, 400) == [Stretch(0, paths[0], 100, 1, 1.0)]
    assert [each.start for each in retrace.stretches(image, 300, 2)] == [0, 200]
    image.__dict__["spec"] = frozen
    assert retrace.stretches(image, 150, 100) == [Stretch(0, paths[0], 150, 2, 2)]
    with pytest.raises(RunError, match="tested with its initial weights"):
        retrace.stretches(image, 0)
    image.__dict__["spec"] = frozen.with_overrides(["fork.run=x", "fork.step=300"])
    paths.clear()
    with pytest.raises(RunError, match="is a fork without a kept checkpoint"):
        retrace.stretches(image, 150)


def test_the_best_weights_by_validation_were_tested(run: Run) -> None:
    saved = checkpoint.load(run.path)
    assert retrace.tested_step(saved) == 8
    best = replace(saved, tensors={**saved.tensors, "best.x": torch.zeros(1)}, facts={**saved.facts, "best_step": 5})
    assert retrace.tested_step(best) == 5


def test_what_is_kept_names_those_that_harmed_most(run: Run) -> None:
    samples = worst(run, 1)[0]
    question = Question.from_json(Question(*samples).to_json())
    assert question == Question(*samples)
    path = failure.make(run, question)
    assert path == failure.path_of(run, *samples)
    told, whole = failure.read(path), failure.of_failures(run, [samples])
    values = dict(zip(whole.samples.tolist(), whole.influence[0].tolist(), strict=True))
    assert len(told["harmful"]) == len(told["helpful"]) == 12
    assert [each[1] for each in told["harmful"]] == sorted(values.values())[:12]
    assert all(values[sample] == value for sample, value in told["harmful"] + told["helpful"])
    assert told["harm"] == pytest.approx(sum(value for value in values.values() if value < 0))
    assert told["seen"] == sum(value != 0 for value in values.values()) < told["train"] == len(values)
    assert failure.count_listed(724) == 8
    assert failure.most_harmful(np.array([0.1, -1.0, 0.0, -2.0]), 3).tolist() == [3, 1]
    assert failure.read(None) is None
    with pytest.raises(ValueError, match="not in the test split"):
        failure.make(run, Question(10**7, 1, 2))
