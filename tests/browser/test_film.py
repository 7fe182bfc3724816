"""Films for slides: recorded by the control of a page, under its content policy, and decoded as by any player."""

from __future__ import annotations

import base64
import re
import struct
import zipfile
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import expect

from dmlcore.storage.runs import EXAMPLE
from tests.browser.harness import becomes, go

pytestmark = pytest.mark.browser
SMALL = {"width": 900, "height": 600}  # every pixel of a film is drawn and compressed
# Return a film's first frame, its frames after a quarter and a half, and its last one, as 96 x 96 x 3 bytes; its sides
# and duration.
READ = """async address => {
  const video = document.createElement("video");
  video.muted = true;
  video.src = address;
  const heard = name => new Promise(done => video.addEventListener(name, done, { once: true }));
  video.onerror = () => { throw new Error(video.error.message); };
  await heard("loadeddata");
  if (!Number.isFinite(video.duration)) { video.currentTime = 1e6; await heard("seeked"); }  // a stream knows no length
  const length = Number.isFinite(video.duration) ? video.duration : video.currentTime;
  const canvas = Object.assign(document.createElement("canvas"), { width: 96, height: 96 });
  const look = async at => {
    video.currentTime = at;
    await heard("seeked");
    const ctx = canvas.getContext("2d", { willReadFrequently: true });
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(video, 0, 0, 96, 96);
    return [...ctx.getImageData(0, 0, 96, 96).data].filter((_, i) => i % 4 < 3);
  };
  const frames = [];
  for (const share of [0, 0.25, 0.5, 0.99]) frames.push(await look(length * share));
  return { length, frames, width: video.videoWidth, height: video.videoHeight };
}"""


def film(page, motion: str, seconds: int, folder: Path, kind: str, frame: str = "Figure alone") -> Path:
    """Return the file that the dialog of a page saves."""
    page.get_by_role("button", name="Film", exact=True).click()
    dialog = page.get_by_role("dialog", name="Record a film")
    dialog.get_by_label("what to record").select_option(label=motion)
    dialog.get_by_label("seconds").fill(str(seconds))
    dialog.get_by_label("frame").select_option(label=frame)
    of_kind = dialog.get_by_label("file type")
    of_kind.select_option(label=next(text for text in of_kind.locator("option").all_text_contents() if kind in text))
    with page.expect_download() as taken:
        dialog.get_by_role("button", name="Record").click()
    path = folder / taken.value.suggested_filename
    taken.value.save_as(path)
    expect(dialog.get_by_text("saved to your downloads")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    return path


def apart(one: list[int], other: list[int]) -> float:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) / len(one)


def played(page, path: Path) -> dict:
    """Decode a file in a tab of its own, without the app's content policy."""
    other = page.context.new_page()
    kind = "video/mp4" if path.suffix == ".mp4" else "video/webm"
    seen = other.evaluate(READ, f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}")
    other.close()
    return seen


def shown_for(path: Path) -> list[int]:
    """Return how many ms an MP4 shows each frame.

    The table of times (stts) has 8 bytes per entry, in units of the media header (mdhd).
    """
    data = path.read_bytes()
    (per_second,) = struct.unpack_from(">I", data, data.index(b"mdhd") + 16)
    table = data.index(b"stts") + 8
    (count,) = struct.unpack_from(">I", data, table)
    pairs = struct.iter_unpack(">II", data[table + 4 : table + 4 + 8 * count])
    ends = accumulate(ticks for frames, ticks in pairs for _ in range(frames))
    return [after - before for before, after in pairwise([0, *(round(1000 * end / per_second) for end in ends)])]


def test_a_loop_of_the_field_ends_where_it_begins(page, server, tmp_path):
    go(page, f"{server.url}/fields?loss=ranking&m=0.3&n=0.3,0.6")
    page.wait_for_selector("canvas.plane[data-seq]")
    page.locator("summary", has_text="Export").click()
    path = film(page, "Loop: m from end to end and back", 1, tmp_path, "MP4")
    seen = played(page, path)
    start, quarter, half, last = seen["frames"]
    assert path.name == "fields.mp4"
    assert seen["width"] == pytest.approx(seen["height"], abs=2)
    assert seen["width"] > 700
    assert seen["length"] == pytest.approx(1, abs=0.01)  # independent of other load on the machine
    assert shown_for(path) == [40] * 25
    assert apart(start, half) > 40
    assert apart(start, half) > apart(start, quarter)
    assert apart(start, last) < 0.1 * apart(start, half)
    expect(page.get_by_role("spinbutton", name="m value")).to_have_value("0.3")  # restored

    pictures = zipfile.ZipFile(film(page, "Loop: m from end to end and back", 1, tmp_path, "PNG"))
    assert pictures.testzip() is None
    assert pictures.namelist() == [f"{i:04}.png" for i in range(1, 26)]
    with pictures.open("0001.png") as file:
        first = Image.open(file).convert("RGB")
    assert first.size == (seen["width"], seen["height"])
    drawn = first.resize((96, 96), Image.Resampling.NEAREST).tobytes()
    assert apart(start, list(drawn)) < 6  # colours of the page

    # After cancelling, nothing is saved and the point is restored.
    page.get_by_role("button", name="Film", exact=True).click()
    dialog = page.get_by_role("dialog", name="Record a film")
    dialog.get_by_label("what to record").select_option(label="Loop: N goes around A and P")
    dialog.get_by_label("seconds").fill("30")
    dialog.get_by_role("button", name="Record").click()
    expect(dialog.get_by_text(re.compile(r"frame \d+ of 750"))).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog.get_by_text("Cancelled.")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator('[data-point="negative"]')).to_have_attribute("aria-label", "negative at 0.3, 0.6")


def test_the_map_over_training_and_its_points_of_webgl_are_on_the_film(page, server, tmp_path):
    page.set_viewport_size(SMALL)
    go(page, f"{server.url}/explore?run={EXAMPLE}&training=1")
    page.wait_for_selector("canvas.map[data-painted]")
    page.get_by_role("button", name="Film", exact=True).click()
    page.get_by_label("what to record").wait_for()
    options = page.get_by_label("what to record").locator("option").all_text_contents()
    page.keyboard.press("Escape")
    path = film(page, options[0], 1, tmp_path, "WebM")
    seen = played(page, path)
    for frame in seen["frames"]:
        pixels = [frame[i : i + 3] for i in range(0, len(frame), 3)]
        assert sum(max(pixel) - min(pixel) > 40 for pixel in pixels) > 60  # coloured points, drawn by WebGL


@pytest.mark.usefixtures("in_motion")
def test_what_moves_by_itself_is_filmed_for_as_long_as_asked(page, server, tmp_path):
    page.set_viewport_size(SMALL)
    go(page, f"{server.url}/sphere?on=sphere")  # it rotates until the first touch
    page.get_by_role("button", name="Film", exact=True).wait_for()
    path = film(page, "Current motion", 2, tmp_path, "MP4")
    times = shown_for(path)
    assert sum(times) == 2000
    assert min(times) > 0
    assert played(page, path)["length"] == pytest.approx(2, abs=0.01)


def share_card(page, folder: Path) -> Image.Image:
    with page.expect_download() as taken:
        page.get_by_role("button", name="Share card").click()
    path = folder / taken.value.suggested_filename
    taken.value.save_as(path)
    with Image.open(path) as image:
        return image.convert("RGB")


def ink(image: Image.Image, box: tuple[int, int, int, int]) -> int:
    """Return the number of pixels in a box (left, top, right, bottom) that differ from the background."""
    background = Image.new("RGB", image.size, image.getpixel((5, 5)))
    return (
        ImageChops.difference(image, background).convert("L").point(lambda v: 255 * (v > 60)).crop(box).histogram()[255]
    )


def test_a_share_card_has_figure_title_and_formula(page, server, tmp_path):
    go(page, f"{server.url}/fields?loss=ranking&m=0.3&n=0.3,0.6")
    page.wait_for_selector("canvas.plane[data-seq]")
    page.locator("summary", has_text="Export").click()
    short = share_card(page, tmp_path)
    page.get_by_label("loss", exact=True).select_option("distance_sensitive")
    figure, words, right = (48, 48, 580, 580), (620, 40, 1160, 150), (1000, 150, 1160, 300)
    # only the second formula is that long; the figure is drawn once its field has been computed
    long = becomes(lambda: share_card(page, tmp_path), lambda image: min(ink(image, right), ink(image, figure)) > 200)
    for image in (short, long):
        assert image.size == (1200, 630)
        assert ink(image, figure) > 3000
        assert ink(image, words) > 1000
    assert ink(short, right) == 0
    path = film(page, "Loop: N goes around A and P", 1, tmp_path, "MP4", "Share card, 1200 × 630")
    seen = played(page, path)
    assert (seen["width"], seen["height"]) == (1200, 630)
    assert apart(seen["frames"][0], seen["frames"][2]) > 1


@pytest.mark.parametrize("place", ["compare", "pair_weights"])
def test_a_share_card_of_two_losses_shows_their_figures_in_one_row(page, server, tmp_path, place):
    """Also on a phone, where the page shows the figures below each other."""
    page.set_viewport_size({"width": 390, "height": 844})
    go(page, f"{server.url}/{place}")
    page.wait_for_selector("[data-seq]")
    card = share_card(page, tmp_path)
    assert card.size == (1200, 630)
    assert ink(card, (48, 48, 330, 340)) > 500  # first figure
    assert ink(card, (400, 48, 640, 340)) > 300  # second figure
    assert ink(card, (48, 390, 600, 600)) > 1000  # words
    assert ink(card, (620, 390, 1160, 580)) > 300  # formulas
    assert ink(card, (620, 582, 1060, 630)) == 0  # the formulas end above the name of the lab
