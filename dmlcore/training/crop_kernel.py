"""Triton kernel that crops and resizes a batch of images; importing this module requires Triton.

It reads each pixel of the result from the few source pixels that have weight in it, instead of multiplying whole images
by matrices of weights, most of which are zero.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

COLUMNS = 128  # columns of the result that one program computes


@triton.jit
def _weight(place, begin, length, centre, scale):
    """Return the weight of source pixels in the result pixel at `centre`, not normalised; 0 outside the crop."""
    middle = place.to(tl.float32) + 0.5
    inside = (middle > begin) & (middle < begin + length)
    distance = tl.abs(middle - centre)
    return tl.where(inside, tl.maximum(1.0 - distance / tl.maximum(scale, 1.0), 0.0), 0.0)


@triton.jit(do_not_specialize=["high", "wide", "side"])  # sizes differ from batch to batch
def _crop_kernel(images, boxes, flips, result, high, wide, side, TAPS: tl.constexpr, COLUMNS: tl.constexpr):
    """Compute some columns of one row of one image.

    `images` (n, high, wide, 3) and `result` (n, side, side, 3) are uint8, `boxes` (n, 4) int64 and `flips` (n,) uint8.
    """
    image, row = tl.program_id(0), tl.program_id(1)
    column = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    box = boxes + image * 4
    top, left = tl.load(box).to(tl.float32), tl.load(box + 1).to(tl.float32)
    height, width = tl.load(box + 2).to(tl.float32), tl.load(box + 3).to(tl.float32)
    down, across = height / side, width / side
    y = top + (row + 0.5) * down
    seen = column.to(tl.float32) + 0.5
    seen = tl.where(tl.load(flips + image) != 0, side - seen, seen)
    x = left + seen * across
    first_y = tl.floor(y - tl.maximum(down, 1.0) - 0.5).to(tl.int32)
    first_x = tl.floor(x - tl.maximum(across, 1.0) - 0.5).to(tl.int32)
    channel = tl.arange(0, 4)
    used = (column < side)[:, None] & (channel < 3)[None, :]
    source = images + image.to(tl.int64) * high * wide * 3
    sums = tl.zeros((COLUMNS, 4), tl.float32)
    rows_weight = 0.0
    for i in range(TAPS):
        by_row = _weight(first_y + i, top, height, y, down)
        rows_weight += by_row
        if by_row > 0:
            columns_weight = tl.zeros((COLUMNS,), tl.float32)
            line = tl.zeros((COLUMNS, 4), tl.float32)
            for j in range(TAPS):
                by_column = _weight(first_x + j, left, width, x, across)
                columns_weight += by_column
                place = ((first_y + i) * wide + first_x + j) * 3
                mask = used & (by_column > 0)[:, None]
                value = tl.load(source + place[:, None] + channel[None, :], mask=mask, other=0).to(tl.float32)
                line += by_column[:, None] * value
            # columns outside the result have no weight
            sums += by_row * (line / tl.where(columns_weight > 0, columns_weight, 1.0)[:, None])
    value = tl.minimum(tl.maximum(sums / rows_weight, 0.0), 255.0)
    # round half to even, as torch.round does
    rounded = tl.floor(value + 0.5)
    odd = rounded - 2.0 * tl.floor(rounded * 0.5)
    rounded -= tl.where((rounded - value == 0.5) & (odd == 1.0), 1.0, 0.0)
    target = result + ((image.to(tl.int64) * side + row) * side) * 3
    tl.store(target + column[:, None] * 3 + channel[None, :], rounded.to(tl.uint8), mask=used)


def crop_and_resize(images: Tensor, boxes: Tensor, flip: Tensor, side: int) -> Tensor:
    """Crop and resize images on a GPU, as `dmlcore.training.batches.crop_and_resize` up to rounding."""
    n, _, high, wide = images.shape
    source = images.permute(0, 2, 3, 1).contiguous()  # without a copy for channels_last images
    result = torch.empty((n, side, side, 3), dtype=torch.uint8, device=images.device)
    taps = 2 * -(-max(high, wide, side) // side) + 2
    grid = (n, side, triton.cdiv(side, COLUMNS))
    _crop_kernel[grid](source, boxes, flip.view(torch.uint8), result, high, wide, side, TAPS=taps, COLUMNS=COLUMNS)
    return result.permute(0, 3, 1, 2)
