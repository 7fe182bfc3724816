"""Image files as upright RGB pixels; a forged or damaged file ends in an error naming it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from dmlcore.data.dataset import DataError, ImageFile, Inputs
from dmlcore.data.shards.index import ShardImage
from dmlcore.typing import Pixels

MAX_PIXELS = (
    50_000_000  # below Pillow's own warning at 89 million, so that a bomb is refused and never merely warned of
)
WORKERS = min(8, os.cpu_count() or 1)


def thumbnail(path: ImageFile, longest: int = 256) -> Pixels:
    """Decode `path` to (h, w, 3), uncropped, neither side over `longest` pixels."""
    image = decode(path, longest=longest)
    image.thumbnail((longest, longest), Image.Resampling.BICUBIC)
    return np.array(image)


def with_short_side(path: ImageFile | BinaryIO, short: int) -> Pixels:
    """Decode `path` to (h, w, 3), the shorter side resized to `short` pixels; of what is longer than 4:1 the middle."""
    return shortened(decode(path, 2 * short), short)


def upright(image: Image.Image) -> Image.Image:
    """An opened image as upright RGB: turned as its EXIF says, transparency on white."""
    return _to_rgb(ImageOps.exif_transpose(image))


def shortened(image: Image.Image, short: int) -> Pixels:
    """`with_short_side` of an upright image."""
    longest = 4 * min(image.size)
    cut_x, cut_y = (max(0, side - longest) / 2 for side in image.size)
    box = (cut_x, cut_y, image.width - cut_x, image.height - cut_y)
    scale = short / min(image.size)
    size = (round((box[2] - box[0]) * scale), round((box[3] - box[1]) * scale))
    return np.asarray(image.resize(size, Image.Resampling.BILINEAR, box))  # Pillow's averages where it reduces


def decode(path: ImageFile | BinaryIO, at_least: int | None = None, longest: int | None = None) -> Image.Image:
    """Return the whole image as upright RGB; raises DataError naming `path`, or the `name` of an open file.

    at_least, longest: a JPEG may be read at 1/2, 1/4 or 1/8 of its size, several times faster, if no side, or the
    longer one, gets shorter than this.
    """
    source: Any = path.open("rb") if isinstance(path, ShardImage) else path
    named: object = path if isinstance(path, Path | ShardImage) else getattr(source, "name", "given")
    try:
        with Image.open(source, formats=("JPEG", "PNG")) as image:
            if image.width * image.height > MAX_PIXELS:
                raise Image.DecompressionBombError(f"{image.width} x {image.height} pixels, over {MAX_PIXELS:,}")
            if at_least:
                image.draft(None, (at_least, at_least))
            if longest and longest < max(image.size):
                width, height = (side * longest / max(image.size) for side in image.size)
                image.draft(None, (math.ceil(width), math.ceil(height)))
            return upright(image)
    except FileNotFoundError as error:
        raise DataError(f"image {named} is missing; complete the data set") from error
    except UnidentifiedImageError as error:
        raise DataError(f"image {named} is neither JPEG nor PNG; replace it by the original file") from error
    except Exception as error:  # decoders raise nearly anything when a file is cut or forged
        raise DataError(f"image {named} cannot be decoded ({error}); replace it by the original file") from error


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits: convert() would saturate at 255 instead of scaling
        grey = np.rint(np.asarray(image, dtype=np.float64) / 257).clip(0, 255).astype(np.uint8)
        image = Image.fromarray(grey)
    if image.has_transparency_data:
        backdrop = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(backdrop, image.convert("RGBA"))
    return image.convert("RGB")


def image_inputs(paths: Sequence[ImageFile], size: int) -> Inputs:
    """Return the images `paths` as network inputs (N, 3, size, size) uint8; THE place that chooses how."""
    from dmlcore.data.files.image_store import StoredImages  # which decodes with this module

    return StoredImages(paths, size)
