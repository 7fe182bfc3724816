"""Runs in two stages on small images, for the tests of neighbourhoods and of the distance from the start."""

from typing import Any

import torch

from dmlcore.spec import RunSpec
from dmlcore.training import build
from dmlcore.training.state import TrainingState

CPU = torch.device("cpu")
SPEC = RunSpec(device="cpu").with_overrides(
    [
        *("data.name=digits_pictures", "model.name=conv4_32", "model.embedding_dim=8", "model.normalize=false"),
        *(
            "model.dropout=0.2",
            "model.start=imagenet",
            "loss.name=tuplet",
            "loss.norm_weight=0.02",
            "loss.start_weight=0.3",
        ),
        *("batch.classes=4", "batch.samples=2", "batch.sampler=neighbourhood", "batch.neighbours=3"),
        *("batch.balanced_steps=3", "batch.refresh=0", "optimiser.learning_rate=0.01"),
        *("schedule.steps=7", "schedule.validate_every=3", "schedule.checkpoint_every=100", "schedule.measure_every=1"),
        *("schedule.keep_every=5",),
    ]
)


def make_state(digits: Any, weights: str, *overrides: str) -> TrainingState:
    state = build.build(SPEC.with_overrides([f"model.start={weights}", *overrides]), digits, CPU)
    state.model.train()
    return state
