"""Where a network starts: pretrained weights, a file of weights, or the best weights of another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dmlcore import checkpoint, weights
from dmlcore.failures import TrainingError
from dmlcore.runs import RunError, RunStore


def start(model: nn.Module, name: str, origin: str) -> None:
    """Load the backbone `name` of a network, all of it or nothing; raises TrainingError.

    origin: "imagenet" or another name of `weights.CHECKPOINTS`, a file of weights, a run id, or the folder of a run.
    """
    backbone: Any = model.backbone
    path = Path(origin).expanduser()
    try:
        if path.is_file() or origin == "imagenet" or origin in weights.CHECKPOINTS or path.suffix:
            weights.load(backbone, name, origin)
        else:
            weights.assign(backbone, _best(path, origin), origin)
    except (weights.WeightsError, RunError, checkpoint.CheckpointError) as error:
        raise TrainingError(f"model.start: {error}") from None


def _best(path: Path, origin: str) -> dict[str, Tensor]:
    """The backbone of a run: its best weights by validation, or else its last ones."""
    folder = path if path.is_dir() else RunStore().open(origin).path
    saved = checkpoint.load(folder)
    if saved is None:
        raise TrainingError(f"model.start: {origin} has no checkpoint yet; finish that run first")
    network = checkpoint.part(saved.tensors, "best") or checkpoint.part(saved.tensors, "model")
    return checkpoint.part(network, "backbone")
