"""The callback for Lightning, with the real library where it is installed."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dmlcore import losses
from dmlcore.storage.runs import RunStore, series

lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")


class Module(lightning.LightningModule):  # type: ignore[name-defined,misc]
    """Linear map of four features to embeddings in the plane."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.layer, self.loss, self.fails = nn.Linear(4, 2), losses.create("ranking"), fails

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        if self.fails:
            raise ArithmeticError("fails")
        inputs, labels = batch
        self.log("train/size", float(len(labels)))
        loss: Tensor = self.loss(nn.functional.normalize(self.layer(inputs)), labels)
        return loss

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> dict[str, Tensor]:
        return {"embeddings": self.layer(batch[0]), "labels": batch[1]}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


def fit(module: Module, callback: Any, folder: Path, epochs: int = 3) -> None:
    """Train on 24 samples of three classes in batches of twelve."""
    torch.manual_seed(0)
    labels = torch.arange(24) % 3
    inputs = torch.eye(4)[labels] + 0.3 * torch.randn(24, 4)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, labels), 12)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        callbacks=[callback],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
        default_root_dir=folder,
    )
    trainer.fit(module, loader, loader)


def test_a_training_is_logged_and_finished(tmp_path: Path) -> None:
    from dmlcore.experiments.lightning import LoggedRunCallback

    fit(Module(), LoggedRunCallback("Lightning", runs=tmp_path), tmp_path)
    (run,) = RunStore(tmp_path).list()
    assert (run.status(), run.state().step, run.state().steps, run.spec.name) == ("done", 6, 6, "Lightning")
    rows = run.metrics()[0]
    assert series(rows, "step", "loss")[0] == [1, 2, 3, 4, 5, 6]
    assert series(rows, "step", "train_size")[1] == [12.0] * 6
    assert series(rows, "validation", "map_at_r")[0] == [2, 4, 6]  # the sanity check is left out
    assert run.embeddings() is not None


def test_an_error_fails_the_run(tmp_path: Path) -> None:
    from dmlcore.experiments.lightning import LoggedRunCallback

    with pytest.raises(ArithmeticError):
        fit(Module(fails=True), LoggedRunCallback(runs=tmp_path), tmp_path)
    (run,) = RunStore(tmp_path).list()
    assert (run.status(), run.state().message) == ("failed", "ArithmeticError: fails")


def test_cancelling_the_run_stops_the_trainer(tmp_path: Path) -> None:
    from dmlcore.experiments.lightning import LoggedRunCallback

    callback = LoggedRunCallback(runs=tmp_path)

    class Cancelling(Module):
        def on_train_batch_start(self, batch: Any, index: int) -> None:
            callback.run.run.request_cancel()

    fit(Cancelling(), callback, tmp_path, epochs=50)
    (run,) = RunStore(tmp_path).list()
    assert run.state().step < 100
