import numpy as np
import pytest
import torch

from dmlcore.spec import RunSpec
from dmlcore.training import build
from dmlcore.training.objective import seed_of


def test_seeds_differ_by_seed_purpose_and_step() -> None:
    seeds = {seed_of(s, purpose, step) for s in range(5) for purpose in ("model", "loss") for step in range(5)}
    assert len(seeds) == 50


def test_vectors_are_normalised_by_the_training_split() -> None:
    spec = RunSpec()
    data = build.load_data(spec)
    made = build.build(spec, data, torch.device("cpu"))
    inside = made.model.normalise(torch.from_numpy(np.array(data.inputs[data.splits["train"]])))
    assert inside.mean().item() == pytest.approx(0, abs=1e-4)
    assert inside.std().item() == pytest.approx(1, abs=1e-3)
    as_they_are = build.build(spec.with_overrides(["data.standardize=false"]), data, torch.device("cpu"))
    raw = torch.from_numpy(np.array(data.inputs[:9]))
    assert torch.equal(as_they_are.model.normalise(raw), raw)
