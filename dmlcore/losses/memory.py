"""Cross-batch memory, which lets a pair loss compare each batch with the embeddings of earlier batches."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from dmlcore.geometry.batches import check_batch, full_precision
from dmlcore.losses.engine.batch_loss import BatchPairs, PairLoss
from dmlcore.losses.engine.table import Counts


class CrossBatchMemory(nn.Module):
    """Loss of a batch plus, once the memory is in use, the loss of the batch against the memory.

    The memory holds the raw embeddings and labels of the last `batches` batches, including the current one, without
    gradients. It is used after start + batches forward passes in training mode. A sample is not compared with its own
    copy. `indices_tuple` selects pairs of the batch only; all pairs with the memory are used.

    The memory is stored in buffers, so that a resumed training run is exact. No operation synchronises with the device.
    In evaluation mode the memory does not change.

    Args:
        loss: Pair loss.
        batches: Number of batches in memory.
        batch_size: Number of samples per batch.
        embedding_dim: Dimension of the embeddings.
        start: Number of training steps before the memory starts to be used.

    Raises:
        ValueError: If the loss is not a pair loss, or a batch in training mode has another size than `batch_size`.

    Reference:
        Wang et al. 2020 (cross-batch memory); Gurbuz 2022, Sec. 3.3.2.1.
    """

    embeddings: Tensor
    labels: Tensor
    steps: Tensor

    def __init__(self, loss: nn.Module, batches: int, batch_size: int, embedding_dim: int, start: int = 1000) -> None:
        super().__init__()
        if not isinstance(loss, PairLoss):
            raise ValueError(
                f"loss.memory: a memory needs a loss of pairs, which {type(loss).__name__} is not; set it to 0"
            )
        if batches < 1 or batch_size < 1 or start < 0:
            raise ValueError(
                f"a memory needs batches >= 1, batch_size >= 1, start >= 0; got {batches}, {batch_size}, {start}"
            )
        self.loss, self.batches, self.batch_size, self.start = loss, batches, batch_size, start
        self.register_buffer("embeddings", torch.zeros(batches * batch_size, embedding_dim))
        self.register_buffer("labels", torch.full((batches * batch_size,), -1, dtype=torch.int64))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self._steps = 0  # copy of `steps` on the host, so that reading it does not synchronise
        self.register_load_state_dict_post_hook(_read_steps)

    @property
    def counts(self) -> Counts:
        """Counts of the pairs within the last batch, without those against the memory."""
        return self.loss.counts

    def measured(self) -> dict[str, Tensor]:
        """Return the values that the pair loss learns, see `PairLoss.measured`."""
        return self.loss.measured()

    @property
    def joined(self) -> bool:
        """True once the loss includes the pairs with the memory."""
        return self._steps > self.start + self.batches

    @full_precision
    def forward(self, embeddings: Tensor, labels: Tensor, indices_tuple: tuple[Tensor, ...] | None = None) -> Tensor:
        """Compute the scalar loss of embeddings (batch_size, D) with integer labels (batch_size,)."""
        own = self._enqueue(embeddings, labels) if self.training else None
        past = self._of_memory(embeddings, labels, own) if self.joined else None
        # computed last, so that `counts` describe the batch without the memory
        loss = cast(Tensor, self.loss(embeddings, labels, indices_tuple))
        return loss if past is None else loss + past

    @torch.no_grad()
    def _enqueue(self, embeddings: Tensor, labels: Tensor) -> int:
        """Overwrite the oldest batch in memory with this batch, and return the index of its first row in memory."""
        shape = (self.batch_size, self.embeddings.shape[1])
        if embeddings.shape != shape:
            raise ValueError(f"the memory expects batches of {shape}, got embeddings {tuple(embeddings.shape)}")
        first = self._steps % self.batches * self.batch_size
        self.embeddings[first : first + self.batch_size] = embeddings.detach()
        self.labels[first : first + self.batch_size] = labels
        self.steps += 1
        self._steps += 1
        return first

    def _of_memory(self, embeddings: Tensor, labels: Tensor, own: int | None) -> Tensor:
        """Compute the loss of the batch against the memory, without pairs of a sample and its own copy.

        `own` is the row of the memory at which the copies of this batch start, or None if the batch is not in memory.
        """
        rows, labels = check_batch(embeddings, labels, unbounded=self.loss.unbounded)
        positive = labels[:, None] == self.labels
        negative = ~positive
        if own is not None:
            positive[:, own : own + len(rows)].fill_diagonal_(False)
        # Copy the memory, because the next batch may overwrite it before this loss is differentiated.
        columns = self.embeddings.to(rows.dtype, copy=True)
        return self.loss.compute(BatchPairs(rows, columns, labels, self.labels, positive, negative, None))


def _read_steps(module: nn.Module, _: Any) -> None:
    memory = cast(CrossBatchMemory, module)
    memory._steps = int(memory.steps)
