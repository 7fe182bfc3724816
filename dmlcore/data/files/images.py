"""Decoding of image files to upright RGB pixels; a forged or damaged file raises a DataError that names the file.

Memory is limited in bytes, not pixels. The memory for decoding is estimated from the header of a file. If it exceeds
BUDGET, the file is refused before a pixel is decoded. Files that need more than LARGE bytes are decoded one at a time.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import ExifTags, Image, JpegImagePlugin, UnidentifiedImageError

from dmlcore.data.dataset import DataError, ImageFile
from dmlcore.data.shards.index import ShardImage
from dmlcore.typing import Pixels

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")  # accepted image formats, a subset of those that Pillow supports
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")
MAX_PIXELS = (
    # Maximum number of pixels of an image. It is below the 89 million at which Pillow warns, so that decompression
    # bombs are refused with an error.
    50_000_000
)
MAX_UPLOAD_PIXELS = 24_000_000  # maximum number of pixels of an image that a user uploads
BUDGET = 224_000_000  # maximum memory in bytes for decoding one file
LARGE = 64_000_000  # files that need more bytes of memory are decoded one at a time
TILE = 1024  # side in pixels of the tiles in which an image is converted to RGB
WORKERS = min(8, os.cpu_count() or 1)

# bytes per pixel that Pillow uses, by image mode; 4 for all other modes
_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2}
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
    """Decode `path` to pixels (h, w, 3), uncropped, with a longer side of at most `longest` pixels."""
    with _decoded(path, longest=longest) as image:
        image.thumbnail((longest, longest), Image.Resampling.BICUBIC)
        return np.array(image)


def with_short_side(
    path: ImageFile | BinaryIO,
    short: int,
    most: int = MAX_PIXELS,
    resample: Image.Resampling = Image.Resampling.BILINEAR,
) -> Pixels:
    """Decode `path` to pixels (h, w, 3) with a shorter side of `short`; crop aspect ratios over 4:1 to 4:1.

    Args:
        path: Path of an image file, or a file object.
        short: Shorter side of the result in pixels.
        most: Maximum number of pixels of the stored image; a larger one raises DataError.
        resample: Interpolation.
    """
    with _decoded(path, at_least=2 * short, most=most) as image:
        return scale_short_side(image, short, resample)


def decode(path: ImageFile | BinaryIO) -> Image.Image:
    """Return the whole image as upright RGB; raise DataError naming `path`, or the `name` of a file object.

    Only the first frame of an animation is returned.
    """
    with _decoded(path) as image:
        return image


def upright(image: Image.Image, at_least: int = 0, longest: int = 0) -> Image.Image:
    """Return an opened image as RGB, rotated according to its EXIF orientation, with transparency on white.

    Args:
        image: The opened image.
        at_least: If the conversion would take more than BUDGET bytes, reduce the image by an integer factor that keeps
            the shorter side at least this number of pixels; 0 disables the reduction.
        longest: Like `at_least`, but the longer side remains at least twice this number of pixels.

    Raises:
        Image.DecompressionBombError: If the conversion would take more than BUDGET bytes and no reduction is enabled.
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


def scale_short_side(image: Image.Image, short: int, resample: Image.Resampling = Image.Resampling.BILINEAR) -> Pixels:
    """Resize an upright image to a shorter side of `short` pixels; crop aspect ratios over 4:1 to 4:1."""
    longest = 4 * min(image.size)
    cut_x, cut_y = (max(0, side - longest) / 2 for side in image.size)
    box = (cut_x, cut_y, image.width - cut_x, image.height - cut_y)
    scale = short / min(image.size)
    size = (round((box[2] - box[0]) * scale), round((box[3] - box[1]) * scale))
    return np.asarray(image.resize(size, resample, box))  # `resize` averages pixels when it downscales


@contextmanager
def _decoded(
    path: ImageFile | BinaryIO, *, at_least: int = 0, longest: int = 0, most: int = MAX_PIXELS
) -> Iterator[Image.Image]:
    """Return a context manager that decodes an image as upright RGB; only one large image is open at a time.

    Args:
        path: Path of an image file, or a file object.
        at_least: As for `upright`. In addition, a JPEG is decoded at 1/2, 1/4 or 1/8 of its size, which is several
            times faster, if no side gets shorter than this.
        longest: As for `upright`. In addition, a JPEG is reduced while decoding if its longer side gets no shorter than
            this.
        most: Maximum number of pixels of the stored image.
    """
    source: Any = path.open("rb") if isinstance(path, ShardImage) else path
    named: object = path if isinstance(path, Path | ShardImage) else getattr(source, "name", "given")
    try:
        with Image.open(source, formats=FORMATS) as image:
            if image.width * image.height > most:
                raise Image.DecompressionBombError(
                    f"{image.width} x {image.height} pixels, above the limit of {most:,} pixels"
                )
            coefficients = _coefficients(image)
            if at_least:
                image.draft(None, (at_least, at_least))
            if longest and longest < max(image.size):
                width, height = (side * longest / max(image.size) for side in image.size)
                image.draft(None, (math.ceil(width), math.ceil(height)))
            cost = _in_memory(image) + coefficients
            if cost > BUDGET:
                raise Image.DecompressionBombError(f"decoding takes {cost / 1e6:,.0f} MB, limit {BUDGET / 1e6:,.0f}")
            with _one_large if cost > LARGE else nullcontext():
                yield upright(image, at_least, longest)
    except FileNotFoundError as error:
        raise DataError(f"image {named} is missing; complete the data set") from error
    except UnidentifiedImageError as error:
        raise DataError(
            f"image {named} is not in a supported format ({', '.join(FORMATS)}); replace it by the original file"
        ) from error
    except Image.DecompressionBombError as error:
        raise DataError(f"image {named} is too large to decode ({error}); reduce its size") from error
    except Exception as error:  # decoders raise almost any exception if a file is truncated or forged
        raise DataError(f"image {named} cannot be decoded ({error}); replace it by the original file") from error


def _in_memory(image: Image.Image) -> int:
    """Return the bytes that Pillow uses for an image: rows padded to a multiple of 4 bytes, plus a pointer per row."""
    return image.height * (8 + (image.width * _BYTES.get(image.mode, 4) + 3) // 4 * 4)


def _coefficients(image: Image.Image) -> int:
    """Return the bytes that the decoder needs besides the pixels: 0 except for WebP and for JPEGs in several scans."""
    pixels = image.width * image.height
    if image.format == "WEBP":
        return 3 * 4 * pixels
    if not isinstance(image, JpegImagePlugin.JpegImageFile) or _is_one_scan(image):
        return 0
    most = max(h * v for _, h, v, _ in image.layer)
    return sum(2 * pixels * h * v // most for _, h, v, _ in image.layer)


def _is_one_scan(image: JpegImagePlugin.JpegImageFile) -> bool:
    """Return True if the first scan of a JPEG contains the complete data of all colour components.

    For any other JPEG, progressive or not, libjpeg stores the coefficients of the whole image in memory. The file
    position must be directly after the header of the first scan, as it is when Pillow has just opened the file.
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
    """Convert a loaded image to RGB, reduced as in `upright`; with `at_least`, crop aspect ratios over 4:1 to 4:1."""
    width, height = image.size
    shorter, longer = sorted(image.size)
    if at_least:
        factor, cut = shorter // at_least, 4 * shorter
    elif longest:
        factor, cut = longer // (2 * longest), longer
    else:
        raise Image.DecompressionBombError(
            f"{width} x {height} pixels of {image.mode} take more than {BUDGET / 1e6:,.0f} MB"
        )
    left, top = (max(0, side - cut) // 2 for side in image.size)
    return _tiled(image, (left, top, left + min(width, cut), top + min(height, cut)), max(1, factor))


def _tiled(image: Image.Image, box: tuple[int, int, int, int], factor: int) -> Image.Image:
    """Convert the region `box` of a loaded image to RGB, tile by tile to save memory.

    `box` is (left, top, right, bottom) in pixels. Each pixel of the result is the mean of `factor` x `factor` pixels.
    """
    left, top, right, bottom = box
    rgb = Image.new("RGB", (math.ceil((right - left) / factor), math.ceil((bottom - top) / factor)))
    step = factor * max(1, TILE // factor)
    for y in range(top, bottom, step):
        for x in range(left, right, step):
            tile = _to_rgb(image.crop((x, y, min(x + step, right), min(y + step, bottom))))
            rgb.paste(tile.reduce(factor) if factor > 1 else tile, ((x - left) // factor, (y - top) // factor))
    return rgb


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits per pixel: convert() would clip at 255 instead of scaling
        grey = np.rint(np.asarray(image, dtype=np.float64) / 257).clip(0, 255).astype(np.uint8)
        image = Image.fromarray(grey)
    if image.has_transparency_data:
        backdrop = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(backdrop, image.convert("RGBA"))
    return image.convert("RGB")
