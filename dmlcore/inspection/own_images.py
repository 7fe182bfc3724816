"""Preparation of arbitrary images as network inputs, in the same way as the images of the training data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from dmlcore.data import Dataset
from dmlcore.data.dataset import DataError
from dmlcore.data.files import images
from dmlcore.data.files.image_store import short_side
from dmlcore.typing import Array, Pixels

if TYPE_CHECKING:
    from PIL import Image

    Source = str | Path | BinaryIO | Image.Image

# data sets of vectors that hold grey images of light ink on black: (side in pixels, grey steps from black to white)
GREY = {"digits": (8, 16)}


@dataclass(frozen=True)
class InputFormat:
    """Format of the inputs of a data set, sufficient to prepare other images in the same way.

    Args:
        data: Name of the data set.
        shape: Shape of one input: (C, H, W) for images, (F,) for vectors, (L,) for bags of tokens.
        centre_cut: True if inputs are centre crops of stored images with a shorter side of 256/227 times the input
            side.
    """

    data: str
    shape: tuple[int, ...]
    centre_cut: bool = False

    @classmethod
    def of(cls, data: Dataset) -> InputFormat:
        """Return the format of the inputs of a data set."""
        return cls(data.name, tuple(data.inputs.shape[1:]), hasattr(data.inputs, "uncut"))

    @property
    def takes_images(self) -> bool:
        """True if images can be prepared as inputs."""
        return self.data in GREY or len(self.shape) == 3

    @property
    def is_ink(self) -> bool:
        """True if inputs show light ink on black; images of ink on paper must then be inverted."""
        return self.data in (*GREY, "digits_pictures") or (len(self.shape) == 3 and self.shape[0] == 1)


def as_inputs(sources: Sequence[Source], data: Dataset | InputFormat, *, invert: bool = False) -> Array:
    """Prepare images as inputs (n, ...) of a data set.

    EXIF rotation is undone, and transparency is replaced with white. The shorter side is scaled as for the images of
    the data set, and then the centre is cropped.

    Args:
        sources: Paths, open files or PIL images of any size.
        data: Data set or input format to prepare images for.
        invert: Invert images of dark ink on white paper, for a data set of light ink on black.

    Raises:
        DataError: An image cannot be decoded, has a format not in `images.FORMATS`, has more than 50 million pixels (24
            million unless given as a path) or needs too much memory; or the inputs of the data set are not images.
    """
    wanted = data if isinstance(data, InputFormat) else InputFormat.of(data)
    if not wanted.takes_images:
        raise DataError(f"{wanted.data} has no images, so images cannot be queries; search by embeddings")
    return np.stack([_one(source, wanted, invert) for source in sources])


def crop_centre(pixels: Pixels, side: int) -> Pixels:
    """Return the central crop (side, side, 3) of an image (h, w, 3), at the same position as for stored images."""
    top, left = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
    return pixels[top : top + side, left : left + side]


def is_dark_on_light(source: Source) -> bool:
    """Return True if the border of an image is lighter than middle grey, as for ink on paper."""
    thumbnail = crop_centre(_short(source, 32), 32).mean(axis=2)
    rim = np.concatenate([thumbnail[0], thumbnail[-1], thumbnail[:, 0], thumbnail[:, -1]])
    return bool(np.median(rim) > 128)


def _one(source: Source, wanted: InputFormat, invert: bool) -> Array:
    if wanted.data in GREY:
        side, steps = GREY[wanted.data]
        grey = crop_centre(_short(source, side), side).mean(axis=2) / 255
        vector: Array = (np.rint((1 - grey if invert else grey) * steps) / steps).astype(np.float32).ravel()
        return vector
    channels, height, side = wanted.shape
    if height != side:
        raise DataError(
            f"images of {wanted.data} are not square, so other images cannot be cropped to match; search by embeddings"
        )
    cut = crop_centre(_short(source, short_side(side) if wanted.centre_cut else side), side)
    if channels == 1:
        cut = np.rint(cut.mean(axis=2, keepdims=True)).astype(np.uint8)
    return np.ascontiguousarray((255 - cut if invert else cut).transpose(2, 0, 1))


def _short(source: Source, short: int) -> Pixels:
    """Return an image (h, w, 3) scaled so that its shorter side has `short` pixels."""
    from PIL import Image

    if isinstance(source, Image.Image):
        if source.width * source.height > images.MAX_UPLOAD_PIXELS:
            size = f"{source.width} x {source.height}"
            raise DataError(
                f"an image of {size} pixels exceeds the limit of {images.MAX_UPLOAD_PIXELS:,}; make it smaller"
            )
        return images.scale_short_side(images.upright(source, at_least=2 * short), short)
    if isinstance(source, (str, Path)):
        return images.with_short_side(Path(source), short)
    source.seek(0)
    return images.with_short_side(source, short, images.MAX_UPLOAD_PIXELS)
