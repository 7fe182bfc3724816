import numpy as np
from PIL import Image

from dmlcore.data.files import images

STRIPES = np.repeat(np.array([[250, 0, 0], [0, 250, 0], [0, 0, 250], [90, 90, 90]], np.uint8), 10, axis=0)


def test_the_shorter_side_is_resized_and_the_colour_order_kept(tmp_path):
    Image.fromarray(np.broadcast_to(STRIPES, (80, 40, 3))).save(tmp_path / "tall.png")
    pixels = images.with_short_side(tmp_path / "tall.png", 20)
    assert pixels.shape == (40, 20, 3)
    assert pixels[10, [2, 7, 12, 17]].tolist() == [[250, 0, 0], [0, 250, 0], [0, 0, 250], [90, 90, 90]]
    assert images.with_short_side(tmp_path / "tall.png", 60).shape == (120, 60, 3)


def test_of_what_is_longer_than_four_to_one_the_middle_is_kept(tmp_path):
    Image.fromarray(np.broadcast_to(STRIPES.repeat(10, axis=0), (20, 400, 3))).save(tmp_path / "strip.png")
    pixels = images.with_short_side(tmp_path / "strip.png", 10)
    assert pixels.shape == (10, 40, 3)
    assert pixels[5, [0, 18, 21, 39]].tolist() == [[0, 250, 0]] * 2 + [[0, 0, 250]] * 2


def test_a_jpeg_read_at_a_fraction_of_its_size_looks_the_same(tmp_path):
    smooth = Image.effect_noise((40, 30), 60).resize((400, 300), Image.Resampling.BICUBIC).convert("RGB")
    smooth.save(tmp_path / "large.jpg", quality=95)
    smooth.save(tmp_path / "large.png")  # never read at a fraction
    jpeg, png = (images.with_short_side(tmp_path / f"large.{kind}", 30).astype(int) for kind in ("jpg", "png"))
    assert jpeg.shape == png.shape == (30, 40, 3)
    assert np.abs(jpeg - png).mean() < 1.5


def test_a_thumbnail_is_whole_and_bounded_and_never_enlarged(tmp_path):
    Image.new("RGB", (400, 200)).save(tmp_path / "large.jpg")
    assert images.thumbnail(tmp_path / "large.jpg", 100).shape == (50, 100, 3)
    assert images.thumbnail(tmp_path / "large.jpg", 1000).shape == (200, 400, 3)
