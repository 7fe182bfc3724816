"""Picture files as upright RGB pixels, decoded on first use; a forged or damaged file ends in an error naming it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from dmlcore.data.dataset import DataError, Indices, Picture

MAX_PIXELS = (
    50_000_000  # below Pillow's own warning at 89 million, so that a bomb is refused and never merely warned of
)
WORKERS = min(8, os.cpu_count() or 1)


def square(path: Path, size: int) -> Picture:
    """Decode `path` to (3, size, size): the shorter side resized to `size` pixels, then the centre."""
    image = ImageOps.fit(_decode(path), (size, size), Image.Resampling.BICUBIC)
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def thumbnail(path: Path, longest: int = 256) -> Picture:
    """Decode `path` to (h, w, 3), uncropped, neither side over `longest` pixels."""
    image = _decode(path)
    image.thumbnail((longest, longest), Image.Resampling.BICUBIC)
    return np.array(image)


def _decode(path: Path) -> Image.Image:
    """Return the whole picture as upright RGB; raise DataError naming `path`."""
    try:
        with Image.open(path, formats=("JPEG", "PNG")) as image:
            if image.width * image.height > MAX_PIXELS:
                raise Image.DecompressionBombError(f"{image.width} x {image.height} pixels, over {MAX_PIXELS:,}")
            return _to_rgb(ImageOps.exif_transpose(image))
    except FileNotFoundError as error:
        raise DataError(f"picture {path} is missing; complete the data set") from error
    except UnidentifiedImageError as error:
        raise DataError(f"picture {path} is neither JPEG nor PNG; replace it by the original file") from error
    except Exception as error:  # decoders raise nearly anything when a file is cut or forged
        raise DataError(f"picture {path} cannot be decoded ({error}); replace it by the original file") from error


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits: convert() would saturate at 255 instead of scaling
        grey = np.rint(np.asarray(image, dtype=np.float64) / 257).clip(0, 255).astype(np.uint8)
        image = Image.fromarray(grey)
    if image.has_transparency_data:
        backdrop = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(backdrop, image.convert("RGBA"))
    return image.convert("RGB")


class LazyPictures:
    """The pictures of `paths` as (N, 3, size, size) uint8; each file is decoded once, when first asked for.

    Indexing is numpy's along the first axis and returns a copy. Raises DataError naming the first unreadable file of
    the request and how many there are; the readable ones stay decoded.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        self._paths = tuple(paths)
        self.shape = (len(self._paths), 3, size, size)
        self._pixels = np.empty(self.shape, dtype=np.uint8)  # pages of memory are taken up as pictures arrive
        self._is_decoded = np.zeros(len(self._paths), dtype=bool)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: Any, /) -> NDArray[np.uint8]:
        rows: Indices = np.arange(len(self._paths))[index]
        wanted = np.unique(rows)
        self._decode_rows(wanted[~self._is_decoded[wanted]])
        return self._pixels.take(rows, axis=0)

    def _decode_rows(self, rows: Indices) -> None:
        if len(rows) == 0:
            return
        with ThreadPoolExecutor(min(WORKERS, len(rows))) as pool:  # Pillow decodes outside the interpreter lock
            failures = [failure for failure in pool.map(self._decode_row, rows) if failure is not None]
        if failures:
            raise DataError(f"{len(failures)} of {len(rows)} pictures are unreadable; first: {failures[0]}")

    def _decode_row(self, row: int) -> DataError | None:
        try:
            self._pixels[row] = square(self._paths[row], self.shape[-1])
        except DataError as error:
            return error
        self._is_decoded[row] = True
        return None
