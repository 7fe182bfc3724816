"""Losses in a Lightning training run, with validation and test without gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from dmlcore import losses

lightning = pytest.importorskip("lightning")


@pytest.mark.parametrize("name", ["distance_sensitive", "proxy_anchor"])
def test_fit_validate_and_test(name: str, tmp_path: Path) -> None:
    class Embedder(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.network = torch.nn.Linear(8, 4)
            self.loss = losses.for_training(name, classes=4, embedding_dim=4)

        def training_step(self, batch: list[Tensor], index: int) -> Tensor:
            return self._loss("fit", batch)

        def validation_step(self, batch: list[Tensor], index: int) -> None:
            self._loss("validation", batch)

        def test_step(self, batch: list[Tensor], index: int) -> None:
            self._loss("test", batch)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=0.05)

        def _loss(self, stage: str, batch: list[Tensor]) -> Tensor:
            points, labels = batch
            value = self.loss(self.network(points), labels)
            self.log(stage, value, batch_size=len(labels))
            return value

    labels = torch.arange(32) // 8
    points = torch.eye(4, 8)[labels] + 0.1 * torch.randn(32, 8, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(TensorDataset(points, labels), batch_size=32)
    trainer = lightning.Trainer(
        max_epochs=20,
        accelerator="cpu",
        logger=False,
        default_root_dir=tmp_path,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Embedder()
    (before,) = trainer.validate(model, loader, verbose=False)
    trainer.fit(model, loader, loader)
    (after,) = trainer.validate(model, loader, verbose=False)
    assert after["validation"] < before["validation"]
    assert trainer.test(model, loader, verbose=False)[0]["test"] == after["validation"]
