"""Images of samples outside a server: of any side, as files in the text of a page, many on one sheet."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from PIL import Image

from dmlcore.data import Dataset
from dmlcore.typing import Floats, Ints, Pixels

PAPER, INK = np.array([[226, 231, 237], [58, 74, 94]], np.uint8)  # of the glyphs: readable on light and dark pages
_GLYPH = 128  # pixels of a glyph's side


def drawer(data: Dataset) -> Callable[[int], Pixels]:
    """index -> the image of a sample (h, w, 3); vectors as bars from the least to the largest value of the data."""
    if data.image is not None:
        return data.image
    every = np.asarray(data.inputs[:])
    low, high = float(every.min()), float(every.max())
    return lambda index: bars((np.asarray(data.inputs[index], np.float64) - low) / ((high - low) or 1.0))


def bars(values: Floats) -> Pixels:
    """The glyph of a vector (F,) of values in 0..1: one bar each."""
    column = np.arange(_GLYPH) * len(values) / _GLYPH
    height = np.rint(values[column.astype(int)] * (_GLYPH - 8)) + 4  # the smallest value is still a sliver
    gap = abs(column % 1 - 0.5) > 0.42 if len(values) <= _GLYPH // 8 else np.zeros(_GLYPH, bool)
    filled = (np.arange(_GLYPH, 0, -1)[:, None] <= height) & ~gap
    glyph: Pixels = np.where(filled[..., None], INK, PAPER)
    return glyph


def fitted(pixels: Pixels, side: int) -> Image.Image:
    """An image whose longer side is at most `side`: smaller ones by a whole factor, every pixel a sharp square."""
    longest = max(pixels.shape[:2])
    if longest > side:
        image = Image.fromarray(pixels)
        image.thumbnail((side, side), Image.Resampling.LANCZOS)
        return image
    factor = side // longest
    return Image.fromarray(pixels.repeat(factor, axis=0).repeat(factor, axis=1))


def data_uri(image: Image.Image) -> str:
    """An image as the address that contains it."""
    file = io.BytesIO()
    photograph = is_photograph(image)
    if photograph:
        image.save(file, "JPEG", quality=80)
    else:
        image.save(file, "PNG", optimize=True)
    return f"data:image/{'jpeg' if photograph else 'png'};base64,{base64.b64encode(file.getvalue()).decode()}"


def is_photograph(image: Image.Image) -> bool:
    """Whether JPEG suits it: many colours, unlike a drawing or few enlarged pixels."""
    return image.getcolors(1024) is None


def sheet(images: Iterable[Pixels], side: int, columns: int, rows: int) -> Image.Image:
    """Images row after row, each in the middle of a square of `side` pixels, on black."""
    canvas = Image.new("RGB", (columns * side, rows * side))
    for number, pixels in enumerate(images):
        image = fitted(pixels, side)
        x, y = number % columns * side, number // columns * side
        canvas.paste(image, (x + (side - image.width) // 2, y + (side - image.height) // 2))
    return canvas


def small(data: Dataset, indices: Sequence[int] | Ints, side: int) -> Iterable[Pixels]:
    """Images for thumbnails of `side`: what the network reads, decoded already, where it is large enough."""
    draw = drawer(data)
    shape = data.inputs.shape
    ready = data.inputs.dtype == np.uint8 and shape[1:2] == (3,) and len(shape) == 4 and min(shape[2:]) >= side
    for index in indices:
        yield np.asarray(data.inputs[int(index)]).transpose(1, 2, 0) if ready else draw(int(index))
