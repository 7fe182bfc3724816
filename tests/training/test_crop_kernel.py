"""The GPU kernel for crops, run by Triton's interpreter on the CPU, compared with matrix products."""

import numpy as np
import pytest
import torch

from dmlcore.training import batches

with pytest.MonkeyPatch.context() as _here:
    _here.setenv("TRITON_INTERPRET", "1")  # is read when Triton is imported
    pytest.importorskip("triton", reason="Triton is not installed")
    from dmlcore.training import crop_kernel


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")


@pytest.mark.parametrize("shape", [(40, 61), (16, 16), (21, 70)])
def test_crops_equal_those_by_matrix_products(shape: tuple[int, int]) -> None:
    images = torch.randint(0, 256, (6, *shape, 3), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    images = images.permute(0, 3, 1, 2)
    sizes = np.array([[shape[0] - k, shape[1] - 2 * k] for k in range(6)])
    boxes, flip = batches.draw_boxes(sizes, (0.1, 1.0), (0.5, 2.0), 3)
    boxes[5] = torch.tensor([0, 0, *shape])
    result = crop_kernel.crop_and_resize(images, boxes, flip, 16)
    expected = batches.crop_and_resize(images, boxes, flip, 16)
    assert result.shape == expected.shape
    assert result.is_contiguous(memory_format=torch.channels_last)
    assert 0 < flip.sum() < 6
    difference = (result.int() - expected.int()).abs()
    assert difference.max() <= 1
    assert (difference > 0).float().mean() < 0.01
