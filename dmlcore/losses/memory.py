"""Cross-batch memory: a pair loss that also compares each batch with the embeddings of earlier ones."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from dmlcore.geometry.batches import full_precision
from dmlcore.losses.engine.batch_loss import BatchPairs, PairLoss
from dmlcore.losses.engine.inputs import ready
from dmlcore.losses.engine.table import Counts


class CrossBatchMemory(nn.Module):
    """The loss of a batch plus, once the memory joins in, that of the batch against the memory.

    The memory holds the raw embeddings and labels of the last `batches` batches of `batch_size`, the current one among
    them, without gradients; it joins in after start + batches forward passes in training. A sample is not compared with
    its own copy. `indices_tuple` chooses pairs of the batch; the memory gives all of its pairs. Buffers make a resumed
    training exact, and nothing waits for the device. Evaluation (`eval()`) leaves the memory as it is.

    Source: Wang et al. 2020 (cross-batch memory); Gurbuz 2022, Sec. 3.3.2.1. Raises ValueError for a loss that is not
    one of pairs, or a batch of another size.
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
        self._steps = 0  # of the buffer, known here without asking the device
        self.register_load_state_dict_post_hook(_read_steps)

    @property
    def counts(self) -> Counts:
        """Terms of the batch itself."""
        return self.loss.counts

    @property
    def joined(self) -> bool:
        """Whether the memory is part of the loss yet."""
        return self._steps > self.start + self.batches

    @full_precision
    def forward(self, embeddings: Tensor, labels: Tensor, indices_tuple: tuple[Tensor, ...] | None = None) -> Tensor:
        """Scalar loss of a batch: embeddings (batch_size, D) floating, labels (batch_size,) integer."""
        own = self._enqueue(embeddings, labels) if self.training else None
        past = self._of_memory(embeddings, labels, own) if self.joined else None
        loss = cast(Tensor, self.loss(embeddings, labels, indices_tuple))  # last, so that its counts stay
        return loss if past is None else loss + past

    @torch.no_grad()
    def _enqueue(self, embeddings: Tensor, labels: Tensor) -> int:
        """Put the batch in the place of the oldest one; return where it begins."""
        shape = (self.batch_size, self.embeddings.shape[1])
        if embeddings.shape != shape:
            raise ValueError(f"the memory holds batches of {shape}, got embeddings {tuple(embeddings.shape)}")
        first = self._steps % self.batches * self.batch_size
        self.embeddings[first : first + self.batch_size] = embeddings.detach()
        self.labels[first : first + self.batch_size] = labels
        self.steps += 1
        self._steps += 1
        return first

    def _of_memory(self, embeddings: Tensor, labels: Tensor, own: int | None) -> Tensor:
        """The loss of all pairs (sample, memory) but those of a sample and its own copy, which start at `own`."""
        rows, labels = ready(embeddings, labels, unbounded=self.loss.unbounded)
        positive = labels[:, None] == self.labels
        negative = ~positive
        if own is not None:
            positive[:, own : own + len(rows)].fill_diagonal_(False)
        # A copy, since the next batch overwrites the memory, maybe before this loss is differentiated.
        columns = self.embeddings.to(rows.dtype, copy=True)
        return self.loss.of(BatchPairs(rows, columns, labels, self.labels, positive, negative, None))


def _read_steps(module: nn.Module, _: Any) -> None:
    memory = cast(CrossBatchMemory, module)
    memory._steps = int(memory.steps)
