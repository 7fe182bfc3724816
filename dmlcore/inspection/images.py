"""Images of samples for pages and reports: thumbnails of any size, embedded as data URIs or combined into sheets."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from PIL import Image

from dmlcore.data import Dataset
from dmlcore.typing import Floats, Ints, Pixels

# colours of the bar charts of vectors, readable on light and dark pages
PAPER, INK = np.array([[226, 231, 237], [58, 74, 94]], np.uint8)
_GLYPH = 128  # side of a bar chart in pixels
CHUNK = 8192  # number of samples that are read at a time


def drawer(data: Dataset) -> Callable[[int], Pixels]:
    """Return a function that takes a sample index and returns an image (h, w, 3) of the sample.

    Vectors are drawn as bars, scaled to the smallest and largest value in the data set.
    """
    if data.image is not None:
        return data.image
    # in chunks, because the inputs of an embedding set are mapped and may not fit into memory
    chunks = (np.asarray(data.inputs[start : start + CHUNK]) for start in range(0, len(data.inputs), CHUNK))
    lows, highs = zip(*((float(chunk.min()), float(chunk.max())) for chunk in chunks), strict=True)
    low, high = min(lows), max(highs)
    return lambda index: bars((np.asarray(data.inputs[index], np.float64) - low) / ((high - low) or 1.0))


def bars(values: Floats) -> Pixels:
    """Return a bar chart (128, 128, 3) of a vector (F,) of values in 0..1."""
    column = np.arange(_GLYPH) * len(values) / _GLYPH
    height = np.rint(values[column.astype(int)] * (_GLYPH - 8)) + 4  # the offset keeps the smallest value visible
    gap = abs(column % 1 - 0.5) > 0.42 if len(values) <= _GLYPH // 8 else np.zeros(_GLYPH, bool)
    filled = (np.arange(_GLYPH, 0, -1)[:, None] <= height) & ~gap
    glyph: Pixels = np.where(filled[..., None], INK, PAPER)
    return glyph


def fit_into(pixels: Pixels, side: int) -> Image.Image:
    """Return an image whose longer side is at most `side` pixels.

    Larger images are reduced; smaller ones are enlarged by an integer factor, so that every pixel stays a sharp square.
    """
    longest = max(pixels.shape[:2])
    if longest > side:
        image = Image.fromarray(pixels)
        image.thumbnail((side, side), Image.Resampling.LANCZOS)
        return image
    factor = side // longest
    return Image.fromarray(pixels.repeat(factor, axis=0).repeat(factor, axis=1))


def data_uri(image: Image.Image) -> str:
    """Return an image as a data URI: JPEG for photographs, otherwise PNG."""
    file = io.BytesIO()
    photograph = is_photograph(image)
    if photograph:
        image.save(file, "JPEG", quality=80)
    else:
        image.save(file, "PNG", optimize=True)
    return f"data:image/{'jpeg' if photograph else 'png'};base64,{base64.b64encode(file.getvalue()).decode()}"


def is_photograph(image: Image.Image) -> bool:
    """Return True if the image has more than 1,024 colours, unlike a drawing or an enlarged tiny image."""
    return image.getcolors(1024) is None


def sheet(images: Iterable[Pixels], side: int, columns: int, rows: int) -> Image.Image:
    """Return a black sheet with the images in reading order, each centred in a square of `side` pixels."""
    canvas = Image.new("RGB", (columns * side, rows * side))
    for number, pixels in enumerate(images):
        image = fit_into(pixels, side)
        x, y = number % columns * side, number // columns * side
        canvas.paste(image, (x + (side - image.width) // 2, y + (side - image.height) // 2))
    return canvas


def small(data: Dataset, indices: Sequence[int] | Ints, side: int) -> Iterable[Pixels]:
    """Yield the images of samples, for thumbnails of `side` pixels.

    If the stored network inputs are RGB and have at least that size, they are used, which saves decoding image files.
    """
    draw = drawer(data)
    shape = data.inputs.shape
    ready = data.inputs.dtype == np.uint8 and shape[1:2] == (3,) and len(shape) == 4 and min(shape[2:]) >= side
    for index in indices:
        yield np.asarray(data.inputs[int(index)]).transpose(1, 2, 0) if ready else draw(int(index))
