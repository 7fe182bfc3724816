"""Local features of real images in two dimensions: patches of digits, or what a network makes of each position."""

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
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunError
from dmlcore.training import starts
from dmlcore.training.batches import to_device
from dmlcore.training.build import build, load_data
from dmlcore.training.state import use_best
from dmlcore.typing import Floats, Ints, Pixels

MOST_CLASSES, MOST_PER_CLASS = 10, 64  # the study of CIFAR-10: 64 images of each of ten classes
MOST_PIXELS = 10 * 64 * 32 * 32  # beyond this there are fewer images per class, down to eight
SHOWN_SIDE = 64  # pixels a side of an image as it is shown, at most
CHUNK = 64
WEIGHTS_FILE = "resnet20-cifar10.pt"
_OTHER_NETWORKS = ("mlp", "tokens")


@dataclass(frozen=True, eq=False)
class LocalFeatures:
    """n local features, on a grid of (rows, columns), of each of N images, sorted by class."""

    features: Floats  # (N, n, 2)
    grid: tuple[int, int]
    weights: Floats | None  # (N, n) of the run's pooling, where its pooled vector is the sum they weigh
    dimension: int  # of the features before they were brought to two
    kept: float | None  # share of their variance in the two principal components; None: they are 2-D themselves
    labels: Ints  # (N,)
    ranks: Ints  # (N,) place of an image within its class
    indices: Ints  # (N,) into the data set
    class_names: tuple[str, ...]  # by label
    images: Pixels  # (N, side, side, 3)
    window: int  # pixels a side of the patch that is shown for a position
    stride: float  # pixels between two positions
    note: str  # what the features are, in plain words

    def patch(self, image: int, position: int) -> Pixels:
        """The pixels (window, window, 3) around a position of an image, shifted inwards at its borders."""
        side, corner = self.images.shape[1], []
        for place in divmod(position, self.grid[1]):
            start = (place + 0.5) * self.stride - self.window / 2 if self.stride > 1 else place
            corner.append(int(np.clip(round(start), 0, side - self.window)))
        top, left = corner
        return self.images[image, top : top + self.window, left : left + self.window]


def digit_patches(side: int = 3) -> LocalFeatures:
    """All patches of side x side pixels of scikit-learn's digits, on their two principal components; side 2..6."""
    if not 2 <= side <= 6:
        raise ValueError(f"side must be 2..6 pixels, got {side}")
    dataset = data.load("digits")
    chosen = _chosen(dataset, np.arange(len(dataset.labels)), MOST_PER_CLASS)
    grey = np.asarray(dataset.inputs[chosen], dtype=np.float64).reshape(-1, 8, 8)
    windows = np.lib.stride_tricks.sliding_window_view(grey, (side, side), axis=(1, 2))
    patches = windows.reshape(len(chosen), -1, side * side)
    note = f"The {side} × {side} = {side * side} grey values of every patch, untrained."
    grid = (9 - side, 9 - side)
    return _made(dataset, chosen, patches, grid, weights=None, window=side, stride=1.0, note=note)


def pretrained_weights() -> Path | None:
    """The file of ResNet20 weights trained on CIFAR-10, where data are searched for; None if it is not there."""
    from dmlcore.data.files.locate import search_folders

    return next((p for folder in search_folders() if (p := folder / WEIGHTS_FILE).is_file()), None)


def cifar10() -> LocalFeatures:
    """Last feature maps of a ResNet20 classifier of CIFAR-10 on its test images, on two principal components.

    Raises DataError where data or weights are missing.
    """
    weights = pretrained_weights()
    if weights is None:
        raise DataError(f"{WEIGHTS_FILE} was not found; put it beside the data, or choose the digits")
    spec = RunSpec.parse({"data": {"name": "cifar10"}, "model": {"name": "resnet20", "start": str(weights)}})
    dataset = load_data(spec)
    model = build(spec, dataset, torch.device("cpu")).model
    note = "Last feature maps of a ResNet20 trained to classify CIFAR-10; test images."
    return _of_network(model, dataset, note, headed=False)


def of_run(run: Run) -> LocalFeatures:
    """Local features of the test images of a run, by its best weights, in the space of its embeddings if it has any.

    Raises RunError without images or checkpoint, and what reading data and weights raises.
    """
    if not has_images(run.spec):
        raise RunError(f"{run.id} was trained on {run.spec.data.name}, which is no set of images with local features")
    saved = checkpoint.load(run.path)
    if saved is None:
        raise RunError(f"{run.id} has no checkpoint yet")
    dataset = load_data(run.spec)
    state = starts.load_for_evaluation(run, saved, dataset=dataset, device=torch.device("cpu"))
    use_best(state)
    return _of_network(state.model, dataset, f"Test images of {run.spec.data.name}, pooling {run.spec.pooling.name}.")


def has_images(spec: RunSpec) -> bool:
    """Whether a run of this spec has a network for images."""
    return spec.model.name not in _OTHER_NETWORKS


def _of_network(model: nn.Module, dataset: Dataset, note: str, headed: bool = True) -> LocalFeatures:
    pixels = int(np.prod(dataset.inputs.shape[2:]))
    per_class = int(np.clip(MOST_PIXELS // (MOST_CLASSES * pixels), 8, MOST_PER_CLASS))
    chosen = _chosen(dataset, dataset.splits["test"], per_class)
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
    return _made(
        dataset,
        chosen,
        np.concatenate(features),
        grid,
        weights=np.concatenate(weighed) if weighed else None,
        window=min(side, max(6, round(3 * side / grid[0]))),
        stride=side / grid[0],
        note=note + " What is shown for a position is a window about it; the network saw more.",
    )


def _chosen(dataset: Dataset, rows: Ints, per_class: int) -> Ints:
    """The first samples of the first classes of a part, class after class."""
    labels = dataset.labels[rows]
    classes = np.unique(labels)[:MOST_CLASSES]
    return np.concatenate([rows[labels == c][:per_class] for c in classes])


def _made(
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
        images=np.stack([_shown(dataset, int(i)) for i in chosen]),
        window=window,
        stride=stride,
        note=note,
    )


def _plane(features: Floats) -> tuple[Floats, float | None]:
    """Features (N, n, D) in two dimensions, and the share of their variance that is left; None where D = 2."""
    if features.shape[2] == 2:
        return features, None
    from dmlcore.projection import pca  # scikit-learn is slow to import

    flat = features.reshape(-1, features.shape[2])
    plane = pca(flat).astype(np.float64)
    total = float(flat.var(axis=0).sum())
    return plane.reshape(*features.shape[:2], 2), float(plane.var(axis=0).sum()) / total if total else 1.0


def _shown(dataset: Dataset, index: int) -> Pixels:
    """An image as a square of SHOWN_SIDE pixels at most."""
    from PIL import Image

    assert dataset.image is not None
    image = dataset.image(index)
    side = min(SHOWN_SIDE, *dataset.inputs.shape[2:]) if len(dataset.inputs.shape) == 4 else min(image.shape[:2])
    if image.shape[:2] == (side, side):
        return image
    return np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.LANCZOS))
