"""Small image files that need as much memory as possible for decoding.

`python -m tests.faults.adversarial_images FOLDER` decodes all files of a folder one after another and prints, as JSON,
the growth of the process in bytes and the error of each file ("" if it was decoded).
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from pathlib import Path

from PIL import Image

SIDE = 7071  # for 50 million pixels
THUMBNAILS = ("wide",)  # limit of files that are also decoded for a thumbnail


def write_all(folder: Path) -> None:
    """Write the files, each of at most 20 MB."""
    _png(folder / "grey16.png", SIDE, SIDE, 16, 0)
    _png(folder / "rgba.png", SIDE, SIDE, 8, 6)
    _png(folder / "rgb.png", SIDE, SIDE, 8, 2)
    _png(folder / "interlaced.png", SIDE, SIDE, 8, 2, interlaced=True)
    _png(folder / "tall.png", 1, 49_000_000, 8, 0)
    _png(folder / "tallest_allowed.png", 1, 18_000_000, 8, 0)
    _png(folder / "wide.png", 49_000_000, 1, 8, 0)
    Image.new("P", (SIDE, SIDE)).save(folder / "palette.gif")
    Image.new("L", (7000, 7000)).save(folder / "progressive_grey.jpg", progressive=True)
    Image.new("CMYK", (5000, 5000)).save(folder / "cmyk.jpg")
    _claims(folder / "progressive.jpg", 7000, 7000)
    Image.new("RGBA", (3700, 3700), (9, 9, 9, 9)).save(folder / "lossless.webp", lossless=True, method=0)
    _bmp(folder / "runs.bmp", (b"\xff\0" * 27 + bytes((SIDE - 27 * 255, 0, 0, 0))) * SIDE + b"\0\1")


def _png(path: Path, width: int, height: int, bits: int, colours: int, *, interlaced: bool = False) -> None:
    """Write a PNG of zeros; one compressed MiB is repeated."""
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colours]
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    sizes = [(-(-(width - x) // dx), -(-(height - y) // dy)) for x, y, dx, dy in passes]
    total = sum((1 + w * channels * bits // 8) * h for w, h in (sizes if interlaced else [(width, height)]))
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    packer = zlib.compressobj(9, wbits=-15)
    rest = packer.compress(bytes(total % 2**20)) + packer.flush()
    adler = struct.pack(">I", total % 65521 << 16 | 1)
    header = struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, interlaced)
    chunks = ((b"IHDR", header), (b"IDAT", b"\x78\xda" + block * (total // 2**20) + rest + adler), (b"IEND", b""))
    parts = [struct.pack(">I", len(c)) + kind + c + struct.pack(">I", zlib.crc32(kind + c)) for kind, c in chunks]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def _claims(path: Path, width: int, height: int) -> None:
    """Write a progressive JPEG without chroma subsampling whose header claims another size."""
    Image.new("RGB", (8, 8)).save(path, progressive=True, subsampling=0)
    before, frame, behind = path.read_bytes().partition(b"\xff\xc2\x00\x11\x08")
    path.write_bytes(before + frame + struct.pack(">HH", height, width) + behind[4:])


def _bmp(path: Path, content: bytes) -> None:
    """Write a run-length encoded BMP of SIDE x SIDE pixels with a palette of 256 colours."""
    palette = bytes(4 * 256)
    begin = 14 + 40 + len(palette)
    info = struct.pack("<IiiHHIIiiII", 40, SIDE, SIDE, 1, 8, 1, len(content), 0, 0, 256, 0)
    path.write_bytes(b"BM" + struct.pack("<IHHI", begin + len(content), 0, 0, begin) + info + palette + content)


def main(folder: Path) -> None:
    from dmlcore.data.dataset import DataError
    from dmlcore.data.files import images

    grown: dict[str, tuple[int, str]] = {}
    before = _memory("VmRSS")
    for path in sorted(folder.iterdir()):
        Path("/proc/self/clear_refs").write_text("5")  # reset the peak memory
        fault = ""
        try:
            images.with_short_side(path, 73)
            if path.stem in THUMBNAILS:
                images.thumbnail(path)
        except DataError as error:
            fault = str(error)
        grown[path.name] = (_memory("VmHWM") - before, fault)
    print(json.dumps(grown))


def _memory(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
