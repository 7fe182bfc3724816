"""Features of image files: average-pooled maps of a pretrained backbone, with the preprocessing of its authors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from dmlcore.data.dataset import DataError
from dmlcore.data.files import images
from dmlcore.models import backbones, pretrained
from dmlcore.models.networks import NormaliseImages
from dmlcore.models.pretrained import PublicWeights, WeightsError
from dmlcore.typing import Pixels, Singles

BATCH = 16  # images per forward pass; decoded images of two batches are in memory
MARGIN = 32  # pixels by which the resized shorter side exceeds the side of the centre crop


def available() -> dict[str, PublicWeights]:
    """Return the networks whose ImageNet weights are on this machine, with the file that `PooledFeatures` uses."""
    chosen = {network: weights_of(network) for network in _networks()}
    return {network: weights for network, weights in chosen.items() if pretrained.find(weights)}


def _networks() -> list[str]:
    return list(
        dict.fromkeys(each.network for each in pretrained.CHECKPOINTS.values() if each.trained_on == "imagenet")
    )


def weights_of(network: str) -> PublicWeights:
    """Return the published ImageNet weights of a network, preferably a file that is on this machine.

    Raises:
        WeightsError: No such weights are published.
    """
    published = [each for each in pretrained.published(network) if each.trained_on == "imagenet"]
    if not published:
        raise WeightsError(
            f"{network}: no ImageNet weights are known for this network; use one of {', '.join(_networks())}"
        )
    return next((each for each in published if pretrained.find(each)), published[0])


class PooledFeatures:
    """Pretrained backbone that maps image files to vectors of D features.

    Images are converted to upright RGB, resized to a shorter side of `image_size` + 32 pixels with the interpolation of
    the published weights, and cropped at the centre, as in the published evaluations.

    Args:
        network: Name of the backbone.
        device: Device on which features are computed.

    Attributes:
        weights: Published weights of the backbone.
        dimensions: Number D of features.

    Raises:
        WeightsError: The weights are not on this machine and cannot be downloaded.
    """

    def __init__(self, network: str, device: torch.device) -> None:
        self.weights, self._device = weights_of(network), device
        side = self.weights.image_size
        backbone = backbones.create(network, (side, side))
        pretrained.load(backbone, network, self.weights.file)
        self._normalise = NormaliseImages(backbone.normalisation).to(device)
        self._backbone = backbone.to(device).eval()
        self.dimensions = backbone.out_channels

    def batches(self, paths: Sequence[Path]) -> Iterator[list[Singles | DataError]]:
        """Yield the features (D,) of images batch by batch, in order, or the error of an image that cannot be read.

        Threads decode the next batch during each forward pass. Memory does not depend on the number of images.
        """
        chunks = [paths[start : start + BATCH] for start in range(0, len(paths), BATCH)]
        with ThreadPoolExecutor(images.WORKERS, "decode") as pool:
            ahead: list[Future[Pixels | DataError]] = []
            for chunk in [*chunks, []]:
                current, ahead = ahead, [pool.submit(self._decode, path) for path in chunk]
                if current:
                    yield self._embed([each.result() for each in current])

    def _decode(self, path: Path) -> Pixels | DataError:
        """Return the centre crop (S, S, 3) of an image, or the error."""
        side = self.weights.image_size
        try:
            pixels = images.with_short_side(path, side + MARGIN, resample=self.weights.resample)
        except DataError as error:
            return error
        top, left = ((length - side) // 2 for length in pixels.shape[:2])
        return pixels[top : top + side, left : left + side]

    @torch.inference_mode()
    def _embed(self, decoded: list[Pixels | DataError]) -> list[Singles | DataError]:
        readable = [image for image in decoded if not isinstance(image, DataError)]
        if not readable:
            return [image for image in decoded if isinstance(image, DataError)]
        inputs = torch.from_numpy(np.stack(readable)).to(self._device).permute(0, 3, 1, 2)
        features = iter(self._backbone(self._normalise(inputs)).mean((2, 3)).float().cpu().numpy())
        return [image if isinstance(image, DataError) else next(features) for image in decoded]
