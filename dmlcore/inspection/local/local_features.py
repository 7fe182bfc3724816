"""Local features of images, projected to two dimensions: patches of digits, or network features at each position."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from dmlcore import data
from dmlcore.data import DataError, Dataset
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import WITHOUT_BACKBONE
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunError
from dmlcore.training import starts
from dmlcore.training.batches import to_device
from dmlcore.training.build import build, load_data
from dmlcore.training.state import use_best
from dmlcore.typing import Floats, Ints, Pixels

MOST_CLASSES, MOST_PER_CLASS = 10, 64  # limits on the number of classes and of images per class
# limit on the total number of pixels; of large images, fewer are used per class, but at least eight
MOST_PIXELS = 10 * 64 * 32 * 32
SHOWN_SIDE = 64  # largest side in pixels at which images are displayed
CHUNK = 64
WEIGHTS_FILE = "resnet20-cifar10.pt"


@dataclass(frozen=True, eq=False)
class LocalFeatures:
    """Local features of N images, sorted by class: n features per image on a grid of positions."""

    features: Floats  # (N, n, 2)
    grid: tuple[int, int]
    weights: Floats | None  # (N, n) pooling weights; None unless the pooled vector is the weighted sum of the features
    dimension: int  # number of dimensions before the reduction to two
    # share of the variance in the two principal components; None if the features already had two dimensions
    kept: float | None
    labels: Ints  # (N,)
    ranks: Ints  # (N,) position of an image within its class
    indices: Ints  # (N,) sample indices in the data set
    class_names: tuple[str, ...]  # class names by label
    images: Pixels  # (N, side, side, 3)
    window: int  # side in pixels of the patch that is shown for a position
    stride: float  # pixels between two positions
    note: str  # description of the features

    def patch(self, image: int, position: int) -> Pixels:
        """Return the pixels (window, window, 3) around a position; at image borders the window is shifted inwards."""
        side, corner = self.images.shape[1], []
        for place in divmod(position, self.grid[1]):
            start = (place + 0.5) * self.stride - self.window / 2 if self.stride > 1 else place
            corner.append(int(np.clip(round(start), 0, side - self.window)))
        top, left = corner
        return self.images[image, top : top + self.window, left : left + self.window]


def digit_patches(side: int = 3) -> LocalFeatures:
    """Return all square patches of scikit-learn's digits, projected onto two principal components.

    Args:
        side: Side of a patch in pixels, 2..6.

    Raises:
        ValueError: The side is out of range.
    """
    if not 2 <= side <= 6:
        raise ValueError(f"side must be 2..6 pixels, got {side}")
    dataset = data.load("digits")
    chosen = _choose_samples(dataset, np.arange(len(dataset.labels)), MOST_PER_CLASS)
    grey = np.asarray(dataset.inputs[chosen], dtype=np.float64).reshape(-1, 8, 8)
    windows = np.lib.stride_tricks.sliding_window_view(grey, (side, side), axis=(1, 2))
    patches = windows.reshape(len(chosen), -1, side * side)
    note = f"The {side} × {side} = {side * side} grey values of every patch, untrained."
    grid = (9 - side, 9 - side)
    return _assemble(dataset, chosen, patches, grid, weights=None, window=side, stride=1.0, note=note)


def pretrained_weights() -> Path | None:
    """Return the file of ResNet20 weights trained on CIFAR-10; None if no data folder has it."""
    from dmlcore.data.files.locate import search_folders

    return next((p for folder in search_folders() if (p := folder / WEIGHTS_FILE).is_file()), None)


def cifar10() -> LocalFeatures:
    """Return the last feature maps of a CIFAR-10 ResNet20 for test images, projected onto two principal components.

    Raises:
        DataError: The data or the weights are missing.
    """
    weights = pretrained_weights()
    if weights is None:
        raise DataError(f"{WEIGHTS_FILE} was not found; put it into the data folder, or choose the digits")
    spec = RunSpec.parse({"data": {"name": "cifar10"}, "model": {"name": "resnet20", "start": str(weights)}})
    dataset = load_data(spec)
    model = build(spec, dataset, torch.device("cpu")).model
    note = "Last feature maps of a ResNet20 trained to classify CIFAR-10; test images."
    return _of_network(model, dataset, note, headed=False)


def of_run(run: Run) -> LocalFeatures:
    """Return local features of the test images of a run, computed with its best weights.

    If the head of the network can be applied to single positions, the features are its outputs at these positions,
    which lie in the embedding space.

    Raises:
        RunError: The run has no images or no checkpoint.
        CheckpointError: The checkpoint is damaged.
        DataError: The data set cannot be read.
    """
    if not has_images(run.spec):
        raise RunError(f"{run.id} was trained on {run.spec.data.name}, which has no images with local features")
    saved = checkpoint.load(run.path)
    if saved is None:
        raise RunError(f"{run.id} has no checkpoint yet")
    dataset = load_data(run.spec)
    state = starts.load_for_evaluation(run, saved, dataset=dataset, device=torch.device("cpu"))
    use_best(state)
    return _of_network(state.model, dataset, f"Test images of {run.spec.data.name}, pooling {run.spec.pooling.name}.")


def has_images(spec: RunSpec) -> bool:
    """Return True if the network of the spec takes images."""
    return spec.model.name not in WITHOUT_BACKBONE


def _of_network(model: nn.Module, dataset: Dataset, note: str, headed: bool = True) -> LocalFeatures:
    pixels = int(np.prod(dataset.inputs.shape[2:]))
    per_class = int(np.clip(MOST_PIXELS // (MOST_CLASSES * pixels), 8, MOST_PER_CLASS))
    chosen = _choose_samples(dataset, dataset.splits["test"], per_class)
    network: Any = model.eval()
    features, weighed, grid = [], [], (0, 0)
    with torch.inference_mode():
        for start in range(0, len(chosen), CHUNK):
            maps = network.features(to_device(dataset, chosen[start : start + CHUNK], torch.device("cpu")))
            grid = maps.shape[2], maps.shape[3]
            local = network.head.local(maps) if headed else None
            features.append((maps.flatten(2).mT if local is None else local).double().numpy())
            if headed and network.pool.averages:
                network.head(maps)
                weighed.append(network.pool.weights.double().numpy())
    side = min(SHOWN_SIDE, dataset.inputs.shape[2])
    return _assemble(
        dataset,
        chosen,
        np.concatenate(features),
        grid,
        weights=np.concatenate(weighed) if weighed else None,
        window=min(side, max(6, round(3 * side / grid[0]))),
        stride=side / grid[0],
        note=note + " Each position is shown as a window around it; the network saw a larger area.",
    )


def _choose_samples(dataset: Dataset, rows: Ints, per_class: int) -> Ints:
    """Return the first `per_class` samples of each of the first MOST_CLASSES classes in `rows`, class by class."""
    labels = dataset.labels[rows]
    classes = np.unique(labels)[:MOST_CLASSES]
    return np.concatenate([rows[labels == c][:per_class] for c in classes])


def _assemble(
    dataset: Dataset,
    chosen: Ints,
    features: Floats,
    grid: tuple[int, int],
    *,
    weights: Floats | None,
    window: int,
    stride: float,
    note: str,
) -> LocalFeatures:
    labels = dataset.labels[chosen]
    plane, kept = _plane(features)
    return LocalFeatures(
        features=plane,
        grid=grid,
        weights=weights,
        dimension=features.shape[2],
        kept=kept,
        labels=labels,
        ranks=np.arange(len(labels)) - np.searchsorted(labels, labels),
        indices=chosen,
        class_names=dataset.class_names,
        images=np.stack([_thumbnail(dataset, int(i)) for i in chosen]),
        window=window,
        stride=stride,
        note=note,
    )


def _plane(features: Floats) -> tuple[Floats, float | None]:
    """Project features (N, n, D) to two dimensions; also return the share of variance kept, None if D = 2."""
    if features.shape[2] == 2:
        return features, None
    from dmlcore.projection import pca  # scikit-learn is slow to import

    flat = features.reshape(-1, features.shape[2])
    plane = pca(flat).astype(np.float64)
    total = float(flat.var(axis=0).sum())
    return plane.reshape(*features.shape[:2], 2), float(plane.var(axis=0).sum()) / total if total else 1.0


def _thumbnail(dataset: Dataset, index: int) -> Pixels:
    """Return an image as a square with a side of at most SHOWN_SIDE pixels."""
    from PIL import Image

    assert dataset.image is not None
    image = dataset.image(index)
    side = min(SHOWN_SIDE, *dataset.inputs.shape[2:]) if len(dataset.inputs.shape) == 4 else min(image.shape[:2])
    if image.shape[:2] == (side, side):
        return image
    return np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.LANCZOS))
