"""Search index over the test split of a run: exact nearest neighbours of a user's own images or embeddings."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlcore.inspection import own_images
from dmlcore.inspection.neighbours import AGAIN
from dmlcore.metrics import nearest
from dmlcore.storage import arrays
from dmlcore.storage.arrays import EMBEDDINGS
from dmlcore.storage.runs import Run, RunError
from dmlcore.typing import Array, Floats, Ints, Singles

if TYPE_CHECKING:
    from torch import Tensor, nn

    from dmlcore.data import Dataset
    from dmlcore.inspection.own_images import Source

    Queries = Array | Tensor | Source | Sequence[Source]

CHUNK = 64  # number of images per forward pass


@dataclass(eq=False)
class Index:
    """Embeddings of a run that can be searched.

    Row i is sample `indices[i]` of the data set, of class `labels[i]`. `searched` lists the rows that `search` can
    return: the gallery if the data set has one, otherwise all rows. The network is loaded when it is first needed.

    Args:
        run: Run whose network computed the embeddings.
        embeddings: Embeddings (n, D).
        labels: Class labels (n,).
        indices: Sample indices (n,) in the data set.
        searched: Row indices (m,) that `search` can return.
        weights: Digest of the weights that computed the embeddings; "" for a snapshot, whose file is named by its step.
        checkpoint: Checkpoint file of a snapshot.
    """

    run: Run
    embeddings: Singles
    labels: Ints
    indices: Ints
    searched: Ints
    weights: str = ""
    checkpoint: Path | None = None
    _loaded: tuple[nn.Module, Dataset] | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of_run(cls, run: Run, step: int | None = None) -> Index:
        """Return an index of the newest evaluation of a run.

        Args:
            run: Run to search.
            step: Step of a kept checkpoint; if given, the test split is embedded with the weights of that checkpoint
                instead.

        Raises:
            RunError: The run has no evaluation, or no checkpoint of this step; the message lists the steps that are
                kept.
            Unreadable: The file of the embeddings is damaged.
        """
        kept = None
        if step is None:
            path = run.embeddings()
            if path is None:
                raise RunError(f"{run.id} has not been evaluated; run: python -m dmlcore evaluate {run.id}")
        else:
            from dmlcore.inspection import snapshots

            path = snapshots.embed(run, step)
            kept = path.with_suffix(".ckpt")
        stored = arrays.read(path, EMBEDDINGS, "embeddings", "labels", "indices", "is_gallery", remedy=AGAIN)
        embeddings, labels, indices = stored["embeddings"], stored["labels"], stored["indices"]
        marked = np.flatnonzero(stored.get("is_gallery", ()))
        searched = marked if len(marked) else np.arange(len(labels))
        return cls(run, embeddings, labels, indices, searched, path.stem if kept is None else "", kept)

    def search(self, images_or_embeddings: Queries, k: int = 8, *, invert: bool = False) -> tuple[Floats, Ints]:
        """Find the nearest samples of each query.

        A query that is itself a searched sample finds itself first.

        Args:
            images_or_embeddings: Embeddings (q, D); images (q, 3, H, W) uint8 RGB; or one or several paths, open files
                or PIL images of any size.
            k: Number of neighbours.
            invert: Invert images; see `own_images.as_inputs`.

        Returns:
            Euclidean distances (q, k), ascending, and row indices (q, k) of the samples; ties are ordered by row.

        Raises:
            ValueError: A shape or k is wrong.
            TypeError: The queries have the wrong type.
            DataError: An image cannot be decoded.
            RunError: The run has no checkpoint, or the weights of the checkpoint are not those that computed the
                embeddings.
        """
        queries = self._embedded(images_or_embeddings, invert)
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= len(self.searched):
            raise ValueError(f"k must be an integer in 1..{len(self.searched)} (samples that are searched), got {k!r}")
        everything = len(self.searched) == len(self.embeddings)
        gallery = self.embeddings if everything else self.embeddings[self.searched]
        distances, places = nearest(queries, gallery, k=int(k))
        return distances, self.searched[places]

    def embed(self, inputs: Array) -> Singles:
        """Return the embeddings (n, D) of inputs (n, ...), computed on the CPU in evaluation mode.

        Args:
            inputs: Inputs in the format of the data set.

        Raises:
            ValueError: The inputs have another shape.
        """
        import torch

        from dmlcore.training.batches import upload

        network, data = self.network()
        if inputs.shape[1:] != tuple(data.inputs.shape[1:]):
            raise ValueError(f"inputs must have shape (n, {_shape(data)}), as those of {data.name}, got {inputs.shape}")
        parts = [inputs[start : start + CHUNK] for start in range(0, len(inputs), CHUNK)]
        # lock, because pooling modules store intermediate results in their forward pass
        with self._lock, torch.inference_mode():
            embedded = [network(upload(np.ascontiguousarray(part), "cpu")).float() for part in parts]
        embeddings: Singles = torch.cat(embedded).numpy()
        return embeddings

    def network(self) -> tuple[nn.Module, Dataset]:
        """Return the network that computed the embeddings, and its data set; both are loaded on the first call.

        Raises:
            RunError: The run has no checkpoint, or its weights have changed since the evaluation.
            CheckpointError: The checkpoint is damaged.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> tuple[nn.Module, Dataset]:
        import torch

        from dmlcore.storage import checkpoint
        from dmlcore.training import starts
        from dmlcore.training.build import load_data
        from dmlcore.training.state import embedder, use_best

        saved = checkpoint.load(self.run.path) if self.checkpoint is None else checkpoint.read(self.checkpoint)
        if saved is None:
            raise RunError(f"{self.run.id} has no checkpoint, so there is no network to embed images with")
        data = load_data(self.run.spec)
        state = starts.load_for_evaluation(self.run, saved, dataset=data, device=torch.device("cpu"))
        if self.checkpoint is None:
            use_best(state)
        network = embedder(state).eval().requires_grad_(False)
        if self.weights and checkpoint.digest_of(network.state_dict()) != self.weights:
            raise RunError(
                f"{self.run.id}: the embeddings do not match its checkpoint, because it was trained further since; "
                f"run: python -m dmlcore evaluate {self.run.id}"
            )
        return network, data

    def _embedded(self, queries: Queries, invert: bool) -> Array | Tensor:
        import torch

        if not isinstance(queries, (np.ndarray, torch.Tensor)):
            images: list[Any] = list(queries) if isinstance(queries, (list, tuple)) else [queries]
            if images and all(isinstance(x, (int, float, list, tuple, np.ndarray, torch.Tensor)) for x in images):
                raise TypeError("images_or_embeddings: give numbers as one array (q, D) or (q, 3, H, W)")
            if not images:
                raise ValueError("images_or_embeddings is empty")
            return self.embed(own_images.as_inputs(images, self.network()[1], invert=invert))
        if queries.ndim == 4:
            values = queries.detach().cpu().numpy() if isinstance(queries, torch.Tensor) else queries
            if values.dtype != np.uint8:
                raise TypeError(f"images_or_embeddings: images must be uint8 in 0..255, got {values.dtype}")
            return self.embed(values)
        size = self.embeddings.shape[1]
        if queries.ndim != 2 or queries.shape[1] != size:
            raise ValueError(
                f"images_or_embeddings must be embeddings (q, {size}) or images (q, 3, H, W), got "
                f"{tuple(queries.shape)}"
            )
        return queries


def _shape(data: Dataset) -> str:
    return ", ".join(map(str, data.inputs.shape[1:]))
