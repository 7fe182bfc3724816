"""Image files as upright RGB pixels; a forged or damaged file ends in an error that names it.

Memory is bounded in bytes, not pixels: `_cost` estimates what decoding takes from the header alone, and a file over
BUDGET is refused before a pixel is decoded. Files over LARGE are decoded one at a time.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import ExifTags, Image, JpegImagePlugin, UnidentifiedImageError

from dmlcore.data.dataset import DataError, ImageFile, Inputs
from dmlcore.data.shards.index import ShardImage
from dmlcore.typing import Pixels

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")  # that are decoded, whatever else Pillow knows
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")
MAX_PIXELS = (
    50_000_000  # below Pillow's own warning at 89 million, so that a bomb is refused and never merely warned of
)
MAX_UPLOAD_PIXELS = 24_000_000  # of a file that somebody else gives
BUDGET = 224_000_000  # bytes that decoding a file may take
LARGE = 64_000_000  # bytes; of what takes more, one is decoded at a time
TILE = 1024  # pixels a side that are converted together
WORKERS = min(8, os.cpu_count() or 1)

_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2}  # of a pixel in Pillow's memory; 4 for all other modes
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_one_large = threading.Lock()


def thumbnail(path: ImageFile, longest: int = 256) -> Pixels:
    """Decode `path` to (h, w, 3), uncropped, neither side over `longest` pixels."""
    with _decoded(path, longest=longest) as image:
        image.thumbnail((longest, longest), Image.Resampling.BICUBIC)
        return np.array(image)


def with_short_side(path: ImageFile | BinaryIO, short: int, most: int = MAX_PIXELS) -> Pixels:
    """Decode `path` to (h, w, 3), the shorter side resized to `short` pixels; of what is longer than 4:1 the middle.

    Args:
        most: Largest number of pixels in the file.
    """
    with _decoded(path, at_least=2 * short, most=most) as image:
        return shortened(image, short)


def decode(path: ImageFile | BinaryIO) -> Image.Image:
    """Return the whole image as upright RGB; raises DataError naming `path`, or the `name` of an open file.

    Of an animation it is the first frame.
    """
    with _decoded(path) as image:
        return image


def upright(image: Image.Image, at_least: int = 0, longest: int = 0) -> Image.Image:
    """Return an opened image as upright RGB: turned as its EXIF says, transparency on white.

    Args:
        at_least, longest: If the image would take more than BUDGET at its full size, it is reduced on the way, but no
            side to less than `at_least`, or the longer one to less than `longest`; 0: not known, so it is refused.

    Raises:
        Image.DecompressionBombError: It would take more than BUDGET.
    """
    image.load()
    turn = _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    pixels = image.width * image.height
    is_rgb = image.mode == "RGB" and not image.has_transparency_data
    needed = max(_in_memory(image) + 4 * pixels * (not is_rgb), 8 * pixels * (turn is not None))
    if needed > BUDGET:
        rgb = _reduced(image, at_least, longest)
    else:
        rgb = image if is_rgb else _tiled(image, (0, 0, *image.size), 1)
    return rgb.transpose(turn) if turn is not None else rgb


def shortened(image: Image.Image, short: int) -> Pixels:
    """`with_short_side` of an upright image."""
    longest = 4 * min(image.size)
    cut_x, cut_y = (max(0, side - longest) / 2 for side in image.size)
    box = (cut_x, cut_y, image.width - cut_x, image.height - cut_y)
    scale = short / min(image.size)
    size = (round((box[2] - box[0]) * scale), round((box[3] - box[1]) * scale))
    return np.asarray(image.resize(size, Image.Resampling.BILINEAR, box))  # Pillow's averages where it reduces


@contextmanager
def _decoded(
    path: ImageFile | BinaryIO, *, at_least: int = 0, longest: int = 0, most: int = MAX_PIXELS
) -> Iterator[Image.Image]:
    """Decode an image as upright RGB, and hold back other large ones until the caller is done with it.

    Args:
        at_least, longest: As for `upright`; a JPEG is read at 1/2, 1/4 or 1/8 of its size, several times faster, if
            no side, or the longer one, gets shorter than this.
        most: Largest number of pixels.
    """
    source: Any = path.open("rb") if isinstance(path, ShardImage) else path
    named: object = path if isinstance(path, Path | ShardImage) else getattr(source, "name", "given")
    try:
        with Image.open(source, formats=FORMATS) as image:
            if image.width * image.height > most:
                raise Image.DecompressionBombError(f"{image.width} x {image.height} pixels, over {most:,}")
            coefficients = _coefficients(image)
            if at_least:
                image.draft(None, (at_least, at_least))
            if longest and longest < max(image.size):
                width, height = (side * longest / max(image.size) for side in image.size)
                image.draft(None, (math.ceil(width), math.ceil(height)))
            cost = _in_memory(image) + coefficients
            if cost > BUDGET:
                raise Image.DecompressionBombError(f"decoding it takes {cost / 1e6:,.0f} MB, over {BUDGET / 1e6:,.0f}")
            with _one_large if cost > LARGE else nullcontext():
                yield upright(image, at_least, longest)
    except FileNotFoundError as error:
        raise DataError(f"image {named} is missing; complete the data set") from error
    except UnidentifiedImageError as error:
        raise DataError(f"image {named} is none of {', '.join(FORMATS)}; replace it by the original file") from error
    except Image.DecompressionBombError as error:
        raise DataError(f"image {named} is too large to be decoded ({error}); save it smaller") from error
    except Exception as error:  # decoders raise nearly anything when a file is cut or forged
        raise DataError(f"image {named} cannot be decoded ({error}); replace it by the original file") from error


def _in_memory(image: Image.Image) -> int:
    """Return the bytes of an image in Pillow's memory: its rows, each of a multiple of 4, and a pointer to each."""
    return image.height * (8 + (image.width * _BYTES.get(image.mode, 4) + 3) // 4 * 4)


def _coefficients(image: Image.Image) -> int:
    """Return the bytes that a decoder needs beside the pixels: canvases of WebP, coefficients of some JPEGs."""
    pixels = image.width * image.height
    if image.format == "WEBP":
        return 3 * 4 * pixels
    if not isinstance(image, JpegImagePlugin.JpegImageFile) or _is_one_scan(image):
        return 0
    most = max(h * v for _, h, v, _ in image.layer)
    return sum(2 * pixels * h * v // most for _, h, v, _ in image.layer)


def _is_one_scan(image: JpegImagePlugin.JpegImageFile) -> bool:
    """Return True if the first scan of a JPEG, which has just been opened, holds all components whole.

    Of any other one, progressive or not, libjpeg keeps the coefficients of the whole image. The file stands behind the
    header of its first scan.
    """
    if image.info.get("progressive") or image.fp is None:
        return False
    behind = image.fp.tell()
    image.fp.seek(max(0, behind - 16))
    header = image.fp.read(min(16, behind))
    image.fp.seek(behind)
    count = next((n for n in range(1, 5) if header[-2 * n - 8 :][:5] == bytes((0xFF, 0xDA, 0, 2 * n + 6, n))), 0)
    return count == len(image.layer)


def _reduced(image: Image.Image, at_least: int, longest: int) -> Image.Image:
    """Return a loaded image as RGB, reduced by a whole factor; with `at_least` its middle, if it is longer than 4:1."""
    width, height = image.size
    shorter, longer = sorted(image.size)
    if at_least:
        factor, cut = shorter // at_least, 4 * shorter
    elif longest:
        factor, cut = longer // (2 * longest), longer
    else:
        raise Image.DecompressionBombError(
            f"{width} x {height} pixels of {image.mode} take over {BUDGET / 1e6:,.0f} MB"
        )
    left, top = (max(0, side - cut) // 2 for side in image.size)
    return _tiled(image, (left, top, left + min(width, cut), top + min(height, cut)), max(1, factor))


def _tiled(image: Image.Image, box: tuple[int, int, int, int], factor: int) -> Image.Image:
    """Return a box of a loaded image as RGB, each `factor` x `factor` pixels averaged; tile by tile, to save memory."""
    left, top, right, bottom = box
    rgb = Image.new("RGB", (math.ceil((right - left) / factor), math.ceil((bottom - top) / factor)))
    step = factor * max(1, TILE // factor)
    for y in range(top, bottom, step):
        for x in range(left, right, step):
            tile = _to_rgb(image.crop((x, y, min(x + step, right), min(y + step, bottom))))
            rgb.paste(tile.reduce(factor) if factor > 1 else tile, ((x - left) // factor, (y - top) // factor))
    return rgb


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
