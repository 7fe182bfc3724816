"""Files that a page saves of its figure, and a comparison of what they show."""

from __future__ import annotations

import base64
import io

import pypdfium2

SVG = "http://www.w3.org/2000/svg"
TYPES = {"png": "image/png", "svg": "image/svg+xml"}
# Draw two images of the same size over each other; return the share of their pixels that differ clearly.
DIFFERING = """async addresses => {
  const images = await Promise.all(addresses.map(async (src) => {
    const image = new Image();
    image.src = src;
    await image.decode();
    return image;
  }));
  const { width, height } = images[0], [a, b] = images.map((image) => {
    const context = new OffscreenCanvas(width, height).getContext("2d");
    context.drawImage(image, 0, 0, width, height);
    return context.getImageData(0, 0, width, height).data;
  });
  let differing = 0;
  for (let i = 0; i < a.length; i += 4) differing += [0, 1, 2].some((c) => Math.abs(a[i + c] - b[i + c]) > 48);
  return differing / (width * height);
}"""


def save_figure(page, kind: str) -> bytes:
    """Press the button PNG, SVG or PDF of a page and return the content of the file."""
    with page.expect_download() as file:
        page.get_by_role("button", name=kind, exact=True).click()
    return file.value.path().read_bytes()


def data_address(content: bytes, kind: str) -> str:
    """Return an image as a data address."""
    return f"data:{TYPES[kind]};base64,{base64.b64encode(content).decode()}"


def render_pdf(pdf: bytes, scale: float = 1) -> bytes:
    """Return the page of a PDF as a PNG with `scale` pixels per CSS pixel."""
    file = io.BytesIO()
    pypdfium2.PdfDocument(pdf)[0].render(scale=scale / 0.75).to_pil().save(file, "png")
    return file.getvalue()


def read_words(pdf: bytes) -> list[str]:
    """Return the words that can be selected in the page of a PDF."""
    return pypdfium2.PdfDocument(pdf)[0].get_textpage().get_text_bounded().split()


def count_paths(pdf: bytes) -> int:
    """Return how many paths the page of a PDF has."""
    return sum(thing.type == pypdfium2.raw.FPDF_PAGEOBJ_PATH for thing in pypdfium2.PdfDocument(pdf)[0].get_objects())


def embeds_every_font(pdf: bytes) -> bool:
    """Return True if each font of a PDF comes with its glyphs."""
    return pdf.count(b"/Type0") == pdf.count(b"/FontFile2") > 0


def pixel_difference(page, first: str, second: str) -> float:
    """Return the share of pixels in which two images, given as data addresses, differ clearly."""
    blank = page.context.new_page()
    try:
        return blank.evaluate(DIFFERING, [first, second])
    finally:
        blank.close()


def assert_same_figure(page, png: bytes, svg: bytes, pdf: bytes, scale: float = 1) -> None:
    """Fail unless the three files of a figure show the same; `scale`: pixels of the PNG per CSS pixel."""
    seen = data_address(png, "png")
    for other in (data_address(svg, "svg"), data_address(render_pdf(pdf, scale), "png")):
        assert pixel_difference(page, seen, other) < 0.01
    assert pixel_difference(page, seen, f"data:image/svg+xml,<svg xmlns='{SVG}'/>") > 0.02  # an empty page differs
    assert embeds_every_font(pdf)
