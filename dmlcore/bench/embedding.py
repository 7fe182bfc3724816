"""Embedding of images by ResNet-50 at 227 px, in both precisions, compared with a forward pass on a ready batch."""

from __future__ import annotations

from functools import partial

import torch

from dmlcore.bench.measuring import heading, is_small, row, seconds
from dmlcore.bench.workloads import random_photographs, step_spec
from dmlcore.training import build, evaluation
from dmlcore.training.state import TrainingState


def main() -> None:
    """Measure both precisions and print a table."""
    small = is_small()
    spec = step_spec(small)
    state = build.build(
        spec,
        random_photographs(8 if small else 64, 32 if small else 227),
        build.prepare_device("auto", torch.get_num_threads()),
    )
    heading("embedding", "images/s", "forward pass, images/s", "ratio")
    count = len(state.data.splits["train"])
    for precision in ("float32", "bfloat16"):
        ours = seconds(
            partial(evaluation.embed, state.model, state.data, "train", state.device, precision=precision), 2
        )
        bare = forward_seconds(state, count, precision)
        row(precision, f"{count / ours:,.0f}", f"{count / bare:,.0f}", f"{bare / ours:.2f}")


def forward_seconds(state: TrainingState, count: int, precision: str) -> float:
    """Return the seconds in which the network embeds `count` images of a batch that stays on the device."""
    side, size = state.data.inputs.shape[-1], min(count, 112)
    batch = torch.randint(0, 256, (size, 3, side, side), dtype=torch.uint8, device=state.device)
    model = state.model.eval()

    @torch.inference_mode()
    def forward() -> None:
        with torch.autocast(state.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            model(batch)

    return seconds(forward, 5) * count / size


if __name__ == "__main__":
    main()
