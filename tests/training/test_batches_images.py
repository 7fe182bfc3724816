import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from dmlcore.spec import RunSpec
from dmlcore.spec.sections import DataSpec
from dmlcore.training import batches

CPU = torch.device("cpu")
AREA, RATIO = (0.16, 1.0), (0.75, 4 / 3)


class Ragged:
    """Store of five images of different sizes whose centre crops are blank, so that using one of them fails."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.sizes = np.array([[36, 36], [36, 50], [48, 36], [36, 90], [70, 36]])
        self.images = [random.integers(0, 256, (*size, 3), dtype=np.uint8) for size in self.sizes]
        self.shape = (5, 3, 32, 32)

    def __getitem__(self, rows):
        return np.zeros((len(rows), *self.shape[1:]), np.uint8)

    def uncut(self, rows):
        return [self.images[row] for row in rows]


def a_dataset(inputs):
    return SimpleNamespace(inputs=inputs)


@pytest.mark.filterwarnings("error")  # torch warns about arrays that are not writable
def test_uncut_images_come_padded_with_their_sizes():
    stored, data = Ragged(), RunSpec().with_overrides(["data.augment=true", "data.crop=resized"]).data
    stored.images[3].flags.writeable = False
    rows = np.array([3, 1, 4])
    gathered = batches.gather(a_dataset(stored), rows, data, 0)
    assert np.array_equal(gathered.sizes, stored.sizes[rows])
    whole = gathered.inputs.numpy()
    assert (whole.shape, whole.dtype) == ((3, 3, 70, 90), np.uint8)
    for image, row, (height, width) in zip(whole, rows, gathered.sizes, strict=True):
        assert np.array_equal(image[:, :height, :width], stored.images[row].transpose(2, 0, 1))
        assert not image[:, height:].any()
        assert not image[:, :, width:].any()


def test_shifted_images_are_shifted_and_flipped_originals():
    images = torch.randint(1, 256, (32, 3, 32, 32), dtype=torch.uint8)  # 0 is the border
    seen = set()
    for image, changed in zip(images, batches.shift_images(images, seed=3), strict=True):
        shifts = [(dy, dx, flip) for dy in range(9) for dx in range(9) for flip in (False, True)]
        padded = {f: F.pad(image.flip(2) if f else image, (4, 4, 4, 4)) for f in (False, True)}
        found = [s for s in shifts if torch.equal(changed, padded[s[2]][:, s[0] : s[0] + 32, s[1] : s[1] + 32])]
        assert len(found) == 1
        seen.add(found[0])
    assert len(seen) > 20
    assert {flip for _, _, flip in seen} == {False, True}


def test_a_resized_crop_equals_interpolating_each_cut():
    ragged, spec = Ragged(), DataSpec(crop="resized")
    rows = np.array([4, 0, 3, 1, 2, 2, 0, 1])
    batch = batches.load_augmented(a_dataset(ragged), rows, spec, 11, CPU)
    boxes, flip = batches.draw_boxes(ragged.sizes[rows], AREA, RATIO, 11)
    assert batch.shape == (8, 3, 32, 32)
    assert batch.dtype == torch.uint8
    assert batch.is_contiguous(memory_format=torch.channels_last)
    assert 0 < flip.sum() < 8
    for row, (top, left, h, w), turned, found in zip(rows, boxes.tolist(), flip, batch, strict=True):
        cut = torch.from_numpy(ragged.images[row][top : top + h, left : left + w]).permute(2, 0, 1)[None].float()
        assert cut.shape[2:] == (h, w)  # the box lies inside
        expected = F.interpolate(cut, (32, 32), mode="bilinear", antialias=True)[0]
        assert (found - (expected.flip(2) if turned else expected)).abs().max() <= 0.501  # rounded


@pytest.mark.parametrize("side", [8, 36, 90])
def test_a_large_reduction_is_antialiased_and_an_enlargement_is_bilinear(side):
    image = torch.randint(0, 256, (1, 3, 36, 44), dtype=torch.uint8)
    box, flip = torch.tensor([[2, 3, 30, 41]]), torch.tensor([False])
    found = batches.crop_and_resize(image, box, flip, side)
    expected = F.interpolate(image[:, :, 2:32, 3:44].float(), (side, side), mode="bilinear", antialias=True)
    assert (found - expected).abs().max() <= 0.501


def test_the_padding_is_never_seen():
    ragged = Ragged()
    for image in ragged.images:
        image[:] = 200
    batch = batches.load_augmented(a_dataset(ragged), np.arange(5).repeat(20), DataSpec(crop="resized"), 2, CPU)
    assert (batch == 200).all()


def test_area_aspect_and_place_follow_their_law():
    sizes = np.tile([[200, 300]], (4000, 1))
    boxes, flip = batches.draw_boxes(sizes, AREA, RATIO, 0)
    top, left, h, w = boxes.double().unbind(1)
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + h <= 200).all()
    assert (left + w <= 300).all()
    area, aspect = h * w / 60_000, w / h
    # A share above 8/9 of a 2:3 image is wider than 4:3, so it never fits; below 1/2 anything does.
    assert area.min() == pytest.approx(0.16, abs=0.01)
    assert area.max() == pytest.approx(8 / 9, abs=0.01)
    small = area < 0.5
    assert area[small].mean() == pytest.approx(0.33, abs=0.01)  # uniform from 0.16 to 0.5
    assert aspect[small].log().mean() == pytest.approx(0, abs=0.02)
    assert aspect[small].log().std() == pytest.approx(math.log(16 / 9) / math.sqrt(12), abs=0.01)
    assert (aspect.min(), aspect.max()) == (pytest.approx(0.75, abs=0.02), pytest.approx(4 / 3, abs=0.02))
    assert (top / (200 - h).clamp(min=1))[small].mean() == pytest.approx(0.5, abs=0.02)
    assert flip.double().mean() == pytest.approx(0.5, abs=0.03)


def test_where_no_try_fits_the_centre_is_taken():
    boxes, _ = batches.draw_boxes(np.array([[40, 400], [400, 40], [100, 110]]), (1.0, 1.0), (1.0, 1.0), 0)
    assert boxes.tolist() == [[0, 180, 40, 40], [180, 0, 40, 40], [0, 5, 100, 100]]


def test_images_in_memory_are_their_own_whole():
    images = np.random.default_rng(0).integers(0, 256, (6, 3, 32, 32), dtype=np.uint8)
    spec = DataSpec(crop="resized", crop_area=(1.0, 1.0), crop_ratio=(1.0, 1.0))
    batch = batches.load_augmented(a_dataset(images), np.arange(6), spec, 1, CPU)
    for image, found in zip(torch.from_numpy(images), batch, strict=True):
        assert torch.equal(found, image) or torch.equal(found, image.flip(2))


@pytest.mark.parametrize("crop", ["shift", "resized"])
def test_a_batch_is_a_function_of_the_seed(crop):
    images = a_dataset(np.random.default_rng(0).integers(0, 256, (8, 3, 40, 40), dtype=np.uint8))
    spec, rows = DataSpec(crop=crop), np.arange(8)
    first = batches.load_augmented(images, rows, spec, 5, CPU)
    torch.rand(3)  # the global generator does not matter
    assert torch.equal(first, batches.load_augmented(images, rows, spec, 5, CPU))
    assert not torch.equal(first, batches.load_augmented(images, rows, spec, 6, CPU))


def test_without_augmentation_or_images_inputs_are_untouched():
    images = np.random.default_rng(0).integers(0, 256, (4, 3, 32, 32), dtype=np.uint8)
    rows = np.array([2, 0])
    for crop in ("shift", "resized"):
        spec = DataSpec(augment=False, crop=crop)
        assert np.array_equal(batches.load_augmented(a_dataset(images), rows, spec, 0, CPU), images[rows])
    vectors = np.ones((4, 5), np.float32)
    vectors.flags.writeable = False
    assert np.array_equal(batches.load_augmented(a_dataset(vectors), rows, DataSpec(), 0, CPU), vectors[rows])


def test_affine_moves_are_small_and_mirror_nothing():
    images = torch.zeros(64, 1, 28, 28, dtype=torch.uint8)
    images[:, :, 6:22, 6:9] = 255  # an L
    images[:, :, 19:22, 6:16] = 255
    spec = DataSpec(crop="affine")
    changed = batches.load_augmented(a_dataset(images.numpy()), np.arange(64), spec, 5, CPU)
    assert changed.shape == images.shape
    assert changed.dtype == torch.uint8
    assert torch.equal(changed, batches.move_images(images, 5))
    assert not torch.equal(changed, batches.move_images(images, 6))
    ink = changed.float() / 255
    places = torch.arange(28.0)
    across, down = ((ink.sum(dim).squeeze(1) @ places) / ink.sum((1, 2, 3)) for dim in (2, 3))
    assert across.std() > 0.5  # the images do vary
    assert (across - 9.6).abs().max() < 5  # but only slightly
    assert (down - 16).abs().max() < 5
    left, right = ink[..., :14, :14].sum((1, 2, 3)), ink[..., :14, 14:].sum((1, 2, 3))
    assert (left > right).all()  # the upright of the L stays on its side


def test_one_channel_passes_through_every_cut():
    images = torch.randint(0, 256, (4, 1, 32, 32), dtype=torch.uint8)
    for crop in ("shift", "resized", "affine"):
        found = batches.load_augmented(a_dataset(images.numpy()), np.arange(4), DataSpec(crop=crop), 1, CPU)
        assert found.shape == (4, 1, 32, 32)
