"""Where a network starts: pretrained weights, a file of weights, or the best weights of another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dmlcore.models import pretrained
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.training.errors import TrainingError


def start(model: nn.Module, name: str, origin: str) -> None:
    """Load the backbone `name` of a network, all of it or nothing; raises TrainingError.

    origin: "imagenet" or another name of `weights.CHECKPOINTS`, a file of weights, a run id, or the folder of a run.
    """
    backbone: Any = model.backbone
    path = Path(origin).expanduser()
    try:
        if path.is_file() or origin == "imagenet" or origin in pretrained.CHECKPOINTS or path.suffix:
            pretrained.load(backbone, name, origin)
        else:
            pretrained.assign(backbone, _best(path, origin), origin)
    except (pretrained.WeightsError, RunError, checkpoint.CheckpointError) as error:
        raise TrainingError(f"model.start: {error}") from None


def _best(path: Path, origin: str) -> dict[str, Tensor]:
    """The backbone of a run: its best weights by validation, or else its last ones."""
    folder = path if path.is_dir() else RunStore().open(origin).path
    saved = checkpoint.load(folder)
    if saved is None:
        raise TrainingError(f"model.start: {origin} has no checkpoint yet; finish that run first")
    network = checkpoint.part(saved.tensors, "best") or checkpoint.part(saved.tensors, "model")
    return checkpoint.part(network, "backbone")
