"""Adapters for those parts of pytorch-metric-learning that require its own classes or class names.

The library's trainers and `MultipleLosses` accept losses and miners of dmlcore without an adapter. `CrossBatchMemory`
and `SelfSupervisedLoss` check the class name of a loss, `DistributedLossWrapper` and `DistributedMinerWrapper` its base
class. The library is not a dependency of dmlcore; import this module only if it is installed.
"""

from __future__ import annotations

from typing import Any, cast

from pytorch_metric_learning.losses import BaseMetricLossFunction
from pytorch_metric_learning.miners import BaseMiner
from torch import Tensor, nn

from dmlcore import mining


class _AnyLoss(BaseMetricLossFunction):
    """Adapter from a dmlcore loss to the loss class of pytorch-metric-learning."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, embeddings: Tensor, *args: Any, **options: Any) -> Tensor:
        """Return the loss of a batch; further arguments are passed to the dmlcore loss."""
        return cast(Tensor, self.loss(embeddings, *args, **options))


class _TupleLoss(_AnyLoss):
    """Adapter for losses on pairs or triplets, which can compare a batch with reference embeddings."""


_TupleLoss.__name__ = "TripletMarginLoss"  # a class name that CrossBatchMemory and SelfSupervisedLoss accept


class _Miner(BaseMiner):
    """Adapter from a dmlcore miner to the miner class of pytorch-metric-learning."""

    def __init__(self, miner: mining.BatchMiner) -> None:
        super().__init__()
        self.miner = miner

    def mine(self, embeddings: Tensor, labels: Tensor, ref_emb: Tensor, ref_labels: Tensor) -> Any:
        """Return the mined tuples of a batch.

        Without reference embeddings, the base class passes the batch itself as the reference.
        """
        reference = () if ref_emb is embeddings else (ref_emb, ref_labels)
        return self.miner(embeddings, labels, *reference)


def pml_loss(loss: nn.Module) -> nn.Module:
    """Wrap a dmlcore loss as a loss of pytorch-metric-learning.

    Args:
        loss: Loss created by `losses.create` or `losses.for_training`. `CrossBatchMemory` and `SelfSupervisedLoss`
            accept only losses on pairs and triplets, because the others take no reference embeddings.

    Example:
        >>> from pytorch_metric_learning.losses import CrossBatchMemory
        >>> from dmlcore import interop, losses
        >>> memory = CrossBatchMemory(interop.pml_loss(losses.create("ranking")), embedding_size=8, memory_size=64)
    """
    takes_tuples = mining.fits("semi_hard", loss)
    return cast(nn.Module, (_TupleLoss if takes_tuples else _AnyLoss)(loss))


def pml_miner(miner: mining.BatchMiner) -> nn.Module:
    """Wrap a dmlcore miner as a miner of pytorch-metric-learning.

    Args:
        miner: Miner created by `mining.create`.

    Raises:
        ValueError: If the miner selects no tuples ("all"); pytorch-metric-learning is then used without a miner.
    """
    if miner.miner.gives == "everything":
        raise ValueError(f"miner {miner.miner.name} gives no tuples; leave the miner out instead")
    return cast(nn.Module, _Miner(miner))
