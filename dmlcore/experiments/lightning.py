"""Callback that logs the training of a Lightning `Trainer` as a run in DML Lab.

Lightning is not a dependency of dmlcore; import this module only if it is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dmlcore.experiments.logged_runs import LoggedRun, log_run

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    raise ImportError("LoggedRunCallback needs Lightning: pip install lightning") from None


class LoggedRunCallback(Callback):  # type: ignore[misc,unused-ignore]
    """Callback that logs the loss, the metrics of `self.log` and the validations of a Lightning training run.

    If `validation_step` returns {"embeddings": (B, D), "labels": (B,)}, each validation is scored by MAP@R and R@1, and
    the last embeddings are stored when training ends. Cancelling the run in the app stops the trainer. Only rank 0
    logs, and it scores only its own samples; validate on one device to score the complete set.

    Args:
        name: Name of the run.
        normalize: Divide embeddings by their Euclidean norm before they are scored.
        runs: Folder of the run store; by default $DML_RUNS or ./runs.

    Example:
        >>> from dmlcore.experiments.lightning import LoggedRunCallback  # doctest: +SKIP
        >>> callback = LoggedRunCallback("My network")  # doctest: +SKIP
        >>> lightning.Trainer(max_epochs=5, callbacks=[callback]).fit(module, loader)  # doctest: +SKIP
    """

    def __init__(self, name: str = "", *, normalize: bool = True, runs: str | Path | None = None) -> None:
        self.run: LoggedRun | None = None
        self._make = lambda steps: log_run(name, steps=steps, normalize=normalize, runs=runs)
        self._batches: list[tuple[Tensor, Tensor]] = []

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Start the run on rank 0."""
        if trainer.is_global_zero:
            planned = trainer.estimated_stepping_batches
            self.run = self._make(int(planned) if 0 < planned < float("inf") else None)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Log the loss and the metrics of `self.log` every `log_every_n_steps` batches; stop the trainer on request."""
        if self.run is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if loss is not None and (batch_idx + 1) % trainer.log_every_n_steps == 0:
            scalars = {_identifier(name): value for name, value in trainer.logged_metrics.items()}
            self.run.log(trainer.global_step, **{**scalars, "loss": loss})
        trainer.should_stop = trainer.should_stop or self.run.should_stop

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Collect the embeddings and labels that `validation_step` returns."""
        given = isinstance(outputs, Mapping) and {"embeddings", "labels"} <= outputs.keys()
        if self.run is not None and given and not trainer.sanity_checking and dataloader_idx == 0:
            if batch_idx == 0:
                self._batches = []
            self._batches.append((outputs["embeddings"].detach().float().cpu(), outputs["labels"].cpu()))

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Score the collected embeddings."""
        if self.run is not None and self._batches and not trainer.sanity_checking:
            self.run.validate(trainer.global_step, *self._collected())

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Store the embeddings of the last validation and end the run."""
        if self.run is not None and self._batches and self.run.run.status() == "running":
            self.run.finish(*self._collected())
        elif self.run is not None:
            self.run.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """End the run as failed."""
        if self.run is not None:
            self.run.close(exception)

    def _collected(self) -> tuple[Tensor, Tensor]:
        embeddings, labels = zip(*self._batches, strict=True)
        return torch.cat(embeddings), torch.cat(labels)


def _identifier(name: str) -> str:
    """Return the name of a metric, such as "train/loss", as an identifier of at most 64 characters."""
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)[:63]
    return word if word.isidentifier() and word not in ("kind", "step", "self") else f"_{word}"
