import threading

import numpy as np
import pytest
from PIL import Image

from dmlcore.data import DataError
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


@pytest.mark.parametrize("suffix", images.SUFFIXES)
def test_of_every_format_the_first_frame_is_read(tmp_path, suffix):
    path = tmp_path / f"image{suffix}"
    frames = {"save_all": True, "append_images": [Image.new("RGB", (40, 30), "blue")]}
    Image.new("RGB", (40, 30), "red").save(path, **(frames if suffix in (".gif", ".webp", ".png") else {}))
    pixels = images.with_short_side(path, 30)
    assert pixels.shape == (30, 40, 3)
    assert np.abs(pixels.astype(int) - (255, 0, 0)).max() <= 4


@pytest.mark.parametrize("mode", ["RGBA", "I;16", "L"])
def test_what_would_take_too_much_memory_is_reduced_tile_by_tile(tmp_path, monkeypatch, mode):
    smooth = Image.effect_noise((40, 32), 60).resize((1600, 1280), Image.Resampling.BICUBIC)
    image = Image.fromarray(np.asarray(smooth).astype(np.uint16) * 257) if mode == "I;16" else smooth.convert(mode)
    if mode == "RGBA":
        image.paste((0, 0, 0, 0), (0, 0, 800, 600))
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(tmp_path / "large.png", exif=exif)
    paths = (images.with_short_side(tmp_path / "large.png", 40), images.thumbnail(tmp_path / "large.png", 100))
    monkeypatch.setattr(images, "TILE", 100)
    monkeypatch.setattr(images, "BUDGET", images._in_memory(image) + 1)
    reduced = (images.with_short_side(tmp_path / "large.png", 40), images.thumbnail(tmp_path / "large.png", 100))
    for whole, small in zip(paths, reduced, strict=True):
        assert whole.shape == small.shape
        assert np.abs(whole.astype(int) - small).mean() < 3
    with pytest.raises(DataError, match=r"large.png is too large to decode .*; reduce its size"):
        images.decode(tmp_path / "large.png")


def test_large_images_are_decoded_one_at_a_time(tmp_path, monkeypatch):
    Image.new("RGB", (40, 30)).save(tmp_path / "image.png")
    monkeypatch.setattr(images, "LARGE", 1000)
    decoded = []
    other = threading.Thread(target=lambda: decoded.append(images.thumbnail(tmp_path / "image.png")))
    with images._one_large:
        other.start()
        other.join(0.2)
        assert not decoded
    other.join()
    assert decoded


def test_a_jpeg_of_several_scans_costs_its_coefficients(tmp_path):
    path = tmp_path / "image.jpg"
    Image.new("RGB", (64, 64)).save(path, subsampling=0)
    before, scan, behind = path.read_bytes().partition(b"\xff\xda\x00\x0c\x03")
    with Image.open(path) as image:
        assert images._coefficients(image) == 0
    # The first scan holds one component; what a scan of all three would begin with stands before it.
    path.write_bytes(before + b"\xff\xfe\x00\x07" + scan + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + behind)
    with Image.open(path) as image:
        assert images._coefficients(image) == 3 * 2 * 64 * 64
