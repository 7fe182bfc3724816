"""Covering radii of training and test classes, during training and of the tested weights."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore.geometry import average_covering_radius
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import RunStore
from dmlcore.training import build, coverings, evaluation
from dmlcore.training.batches import embed
from dmlcore.training.build import load_data
from tests.training.methods.test_projections import CPU, SPEC, make_state
from tests.training.resumed import trained


def test_covering_rows_say_how_thinly_classes_are_spread() -> None:
    data = load_data(SPEC)
    state = make_state(data)
    row = coverings.row(state)
    for split in ("train", "test"):
        chosen = coverings._draw_samples(data, split, SPEC.seed)
        labels = data.labels[chosen]
        assert max(np.bincount(labels)) <= coverings.SAMPLES
        points = embed(state.model, data, chosen, CPU).astype(np.float64)
        assert row[f"{split}_radius"] == pytest.approx(average_covering_radius(points, labels), rel=1e-6)
    long = make_state(data, "model.lipschitz=false")
    with torch.no_grad():
        list(long.model.parameters())[-1].mul_(100.0)
        list(long.model.parameters())[-2].mul_(100.0)
    assert coverings.row(long)["train_between"] < 2  # in the ball, where the loss compares


def test_the_weights_that_are_tested_are_the_best_of_all_projections(tmp_path: Path) -> None:
    run = trained(RunStore(tmp_path), SPEC)
    rows = run.metrics()[0]
    best = max((row for row in rows if row["kind"] == "validation"), key=lambda row: (row["map_at_r"], -row["step"]))
    (tested,) = [row for row in rows if row["kind"] == "tested_covering"]
    assert tested["step"] == best["step"]
    assert "proxy_radius" not in tested
    state = build.build(run.spec, load_data(run.spec), CPU)
    saved = checkpoint.load(run.path)
    state.model.load_state_dict(checkpoint.select_prefix(saved.tensors, "best"))
    assert evaluation.score(
        evaluation.embed(state.model, state.data, "validation", CPU), state.data, "validation", (1,)
    ).map_at_r == pytest.approx(best["map_at_r"])
