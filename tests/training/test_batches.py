from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.training.batches import Batches
from dmlcore.training.build import TrainingError, load_data
from tests.data import layouts

CPU = torch.device("cpu")
BASE = RunSpec().with_overrides(["batch.classes=4", "batch.samples=3"])


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load_data(BASE)


def never(indices: np.ndarray) -> np.ndarray:
    raise AssertionError("no table was needed")


@pytest.mark.parametrize("sampler", ["balanced", "random"])
def test_a_batch_is_a_function_of_the_step(sampler: str, digits: Dataset) -> None:
    spec = BASE.with_overrides([f"batch.sampler={sampler}"])
    first, again = Batches(spec, digits, CPU), Batches(spec, digits, CPU)
    first.make(1, never)
    a, b, c = first.make(2, never), again.make(2, never), again.make(3, never)
    assert np.array_equal(a.indices, b.indices)
    assert torch.equal(a.inputs, b.inputs)
    assert not np.array_equal(a.indices, c.indices)
    assert np.isin(a.indices, digits.splits["train"]).all()
    assert np.array_equal(a.labels.numpy(), digits.labels[a.indices])
    assert np.array_equal(a.inputs.numpy(), digits.inputs[a.indices])


def test_the_table_is_made_anew_every_refresh_steps(digits: Dataset) -> None:
    spec = BASE.with_overrides(["batch.sampler=neighbourhood", "batch.refresh=4", "batch.neighbours=3"])
    batches, made_at, step = Batches(spec, digits, CPU), [], 0

    def embed(indices: np.ndarray) -> np.ndarray:
        assert np.array_equal(indices, digits.splits["train"])
        made_at.append(step)
        return np.asarray(digits.inputs[indices], np.float32)

    for step in range(1, 11):
        batches.make(step, embed)
    assert made_at == [1, 5, 9]


def test_mined_batches_bring_their_triplets(digits: Dataset) -> None:
    spec = BASE.with_overrides(["batch.sampler=mined", "miner.name=hard_negative"])
    table = np.asarray(digits.inputs[digits.splits["train"]], np.float32)
    batch = Batches(spec, digits, CPU).make(1, lambda indices: table)
    anchors, positives, negatives = batch.tuples
    labels = batch.labels
    assert (labels[anchors] == labels[positives]).all()
    assert (labels[anchors] != labels[negatives]).all()
    points = batch.inputs.double()
    everything, of = digits.splits["train"], torch.from_numpy(digits.labels[digits.splits["train"]])
    distances = torch.cdist(points[anchors], torch.from_numpy(np.array(digits.inputs[everything])).double())
    nearest = distances.masked_fill(labels[anchors][:, None] == of, torch.inf).min(1).values
    assert torch.allclose((points[anchors] - points[negatives]).norm(dim=1), nearest)


@pytest.mark.parametrize("sampler", ["balanced", "neighbourhood"])
def test_a_thread_that_reads_ahead_changes_nothing(sampler: str, digits: Dataset) -> None:
    spec = BASE.with_overrides([f"batch.sampler={sampler}", "batch.refresh=3", "batch.neighbours=3"])
    plain, ahead = Batches(spec, digits, CPU), Batches(spec, digits, CPU)

    def table(scale: int):
        return lambda indices: scale * np.asarray(digits.inputs[indices], np.float32) ** (1 + scale % 2)

    with ThreadPoolExecutor(1) as reader:
        ahead._reader = reader
        for step in (1, 2, 3, 4, 9, 10, 2, 3):  # also out of order, as after a resume
            a, b = plain.make(step, table(step)), ahead.make(step, table(step))
            assert np.array_equal(a.indices, b.indices)
            assert torch.equal(a.inputs, b.inputs)


def test_fresh_collages_are_a_function_of_the_step_and_reading_ahead_changes_nothing(tmp_path) -> None:
    layouts.omniglot_for_collages(tmp_path)
    overrides = ["data.name=omniglot_collage", f"data.root={tmp_path}", "data.augment=false", "batch.classes=3"]
    fixed = BASE.with_overrides(overrides)
    fresh = fixed.with_overrides(["data.fresh=true"])
    data = load_data(fresh)
    plain, ahead, stays = (Batches(spec, data, CPU) for spec in (fresh, fresh, fixed))
    seen = []
    with ThreadPoolExecutor(1) as reader:
        ahead._reader = reader
        for step in (1, 2, 7, 2):
            a, b, c = (batches.make(step, never) for batches in (plain, ahead, stays))
            assert np.array_equal(a.indices, c.indices)
            assert torch.equal(a.inputs, b.inputs)
            assert np.array_equal(c.inputs.numpy(), data.inputs[c.indices])
            assert not torch.equal(a.inputs, c.inputs)
            seen.append(a.inputs)
    assert torch.equal(seen[1], seen[3])
    with pytest.raises(TrainingError, match="cached features of a frozen backbone need fixed collages"):
        Batches(fresh, replace(data, features=object()), CPU)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.fresh=true"], "data.fresh: only collages can be rearranged, and digits has none"),
        (["batch.classes=11"], "batch: a batch needs 11 classes"),
        (["batch.sampler=mined"], "batch: mined batches take the negatives that .*; set miner.name"),
        (["batch.sampler=neighbourhood", "batch.neighbours=4096"], "batch: a neighbourhood of 4096"),
    ],
)
def test_what_cannot_be_drawn_is_refused(overrides: list[str], message: str, digits: Dataset) -> None:
    with pytest.raises(TrainingError, match=message):
        Batches(BASE.with_overrides(overrides), digits, CPU)
