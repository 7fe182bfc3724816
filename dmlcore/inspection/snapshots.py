"""Snapshots of a run: the test split embedded with the weights of each kept checkpoint.

A checkpoint holds the weights of its step and the best weights so far by validation; a snapshot uses the former.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dmlcore.storage import run_directory
from dmlcore.storage.runs import Run, RunError
from dmlcore.storage.task import ProgressCallback

if TYPE_CHECKING:
    from dmlcore.training.state import TrainingState

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Snapshot:
    """Kept checkpoint of a run.

    Args:
        step: Training step.
        checkpoint: Checkpoint file.
        embeddings: File of the test embeddings; None until they are computed.
    """

    step: int
    checkpoint: Path
    embeddings: Path | None


def snapshots(run: Run) -> list[Snapshot]:
    """Return all kept checkpoints of a run by ascending step; an empty list unless `schedule.keep_every` was set."""
    pairs = ((step, path, path.with_suffix(".npz")) for step, path in run_directory.kept_checkpoints(run.path).items())
    return [Snapshot(step, path, scored if scored.is_file() else None) for step, path, scored in pairs]


def embed(run: Run, step: int) -> Path:
    """Embed and score the test split with a kept checkpoint, unless this was done before; return kept/STEP.npz.

    The file holds the arrays that `evaluation.write_embeddings` describes.

    Raises:
        RunError: The run kept no checkpoint of this step; the message lists the steps that it kept.
        CheckpointError: The checkpoint is damaged.
        DataError: The data set cannot be read.
    """
    known = {snapshot.step: snapshot for snapshot in snapshots(run)}
    if step not in known:
        steps = ", ".join(map(str, known)) or "none; train with schedule.keep_every"
        raise RunError(f"{run.id} has no kept checkpoint of step {step}; kept: {steps}")
    return known[step].embeddings or _Embedder(run).embed(known[step])


def embed_all(run: Run, tell: ProgressCallback = lambda words, done, total: None) -> int:
    """Embed every snapshot that has no embeddings yet; return the number of embedded snapshots.

    The last snapshot is embedded first, so that the first and the last can be compared early.
    """
    missing = [snapshot for snapshot in snapshots(run) if snapshot.embeddings is None]
    if missing:
        embedder = _Embedder(run)
        order = [missing[-1], *missing[:-1]]
        for number, snapshot in enumerate(order, 1):
            tell(f"checkpoint {number} of {len(order)}", number - 1, len(order))
            embedder.embed(snapshot)
            log.info("embedded step %d: %d of %d", snapshot.step, number, len(order))
    return len(missing)


class _Embedder:
    """Data set and network of a run, built once for all its snapshots."""

    def __init__(self, run: Run) -> None:
        from dmlcore.training.build import load_data

        self.run, self.data = run, load_data(run.spec)
        self._state: TrainingState | None = None

    def embed(self, snapshot: Snapshot) -> Path:
        """Embed and score the test split with a snapshot; write kept/STEP.npz and return its path."""
        from dmlcore.storage import checkpoint
        from dmlcore.training import evaluation
        from dmlcore.training.build import build, prepare_device
        from dmlcore.training.state import embedder, restore_weights

        spec, saved = self.run.spec, checkpoint.read(snapshot.checkpoint)
        device = prepare_device(spec.device, int(saved.facts["threads"]))
        self._state = state = self._state or build(spec, self.data, device, start=False)
        restore_weights(state, saved.tensors, saved.facts)
        embeddings = evaluation.embed(embedder(state), state.data, "test", device)
        scores = evaluation.score(embeddings, self.data, "test", spec.ks)
        path = snapshot.checkpoint.with_suffix(".npz")
        evaluation.save_embeddings(path, embeddings, self.data, "test", scores)
        return path
