"""Generator of drawn images in the layout and with the official names of CUB-200-2011, for end-to-end training runs.

The names, classes and splits are those of the annotation archive (../shared/data/cub-annotations.tar.gz): 11,788 images
of 200 classes by default. Each class has its own plumage (colours of body, belly and crest, width and slant of bars)
and build; each image has its own pose, position, size, light and cluttered background, which are unrelated to the
class. Classes can thus be distinguished, including classes not seen in training. Equal arguments give equal bytes.
"""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.harness import command_line
from dmlcore.data import locate
from dmlcore.data.files import locate as folders
from dmlcore.data.readers.cub import TRAIN_CLASSES
from dmlcore.typing import Bytes

PACK = folders.HOME.parent / "shared" / "data" / "cub-annotations.tar.gz"
CLASSES = 200
SIZE = 48  # pixels per side
QUALITY = 90
Array = NDArray[np.floating]


def draw(number: int, count: int, size: int, seed: int = 0) -> Bytes:
    """Return `count` images (count, size, size, 3) of the class with the given `number`, counted from 1."""
    bird, pose = np.random.default_rng((seed, number)), np.random.default_rng((seed, number, count))
    body, belly, crest, bar = np.float32(bird.uniform(0, 255, (4, 3)))
    length, height, head = bird.uniform(0.24, 0.34), bird.uniform(0.12, 0.2), bird.uniform(0.08, 0.13)
    bars, slant, belly_share = bird.uniform(1.5, 6), bird.uniform(0, np.pi), bird.uniform(-0.3, 0.5)

    def each(low: float, high: float) -> Array:
        return pose.uniform(low, high, (count, 1, 1))

    down, right = np.meshgrid(*[(np.arange(size) + 0.5) / size] * 2, indexing="ij")
    turn, scale = each(-0.5, 0.5), each(0.8, 1.3)
    across, along = right - each(0.4, 0.6), down - each(0.4, 0.6)
    x = (np.cos(turn) * across + np.sin(turn) * along) / scale * np.where(each(-1, 1) > 0, 1, -1)
    y = (np.cos(turn) * along - np.sin(turn) * across) / scale

    images = _background(pose, count, size)
    in_body = (x / length) ** 2 + (y / height) ** 2 < 1
    barred = np.sin(2 * np.pi * bars * (np.cos(slant) * x + np.sin(slant) * y) / 0.5) > 0.4
    for region, colour in (
        (in_body, body),
        (in_body & barred, bar),
        (in_body & (y > belly_share * height), belly),
        ((x - length) ** 2 + (y + height) ** 2 < head**2, body),
        ((x - length) ** 2 + (y + height + 0.5 * head) ** 2 < (0.6 * head) ** 2, crest),
    ):
        images = np.where(region[..., None], colour, images)
    light = np.float32(pose.uniform(0.8, 1.15, (count, 1, 1, 1)) * pose.uniform(0.95, 1.05, (count, 1, 1, 3)))
    noise = 6 * pose.standard_normal(images.shape, dtype=np.float32)
    return (images * light + noise).clip(0, 255).astype(np.uint8)


def _background(random: np.random.Generator, count: int, size: int) -> Array:
    """Return backgrounds unrelated to the class: blends of two colours with four discs of other colours."""
    down, right = np.meshgrid(*[(np.arange(size) + 0.5) / size] * 2, indexing="ij")
    ends = np.float32(random.uniform(0, 255, (2, count, 1, 1, 3)))
    images = ends[0] + (ends[1] - ends[0]) * np.float32(down[None, ..., None])
    for _ in range(4):
        centre, radius = random.uniform(0, 1, (2, count, 1, 1)), random.uniform(0.04, 0.18, (count, 1, 1))
        disc = (right - centre[0]) ** 2 + (down - centre[1]) ** 2 < radius**2
        images = np.where(disc[..., None], np.float32(random.uniform(0, 255, (count, 1, 1, 3))), images)
    return images


def make(folder: Path, *, classes: int = CLASSES, each: int | None = None, size: int = SIZE, seed: int = 0) -> int:
    """Write the images and lists into the new folder `folder`/CUB_200_2011.

    Args:
        folder: Parent folder.
        classes: Number of classes; half of them are training classes.
        each: Maximum number of images per class; None for as many as in CUB-200-2011.
        size: Side of an image in pixels.
        seed: Seed of the drawn images.

    Returns:
        The number of images written.
    """
    if not 2 <= classes <= CLASSES:
        raise SystemExit(f"--classes must be from 2 to {CLASSES}, got {classes}")
    lists, tree = locate("cub", PACK), folder / "CUB_200_2011"
    tree.mkdir(parents=True)
    half = classes // 2
    kept = {*range(1, classes - half + 1), *range(TRAIN_CLASSES + 1, TRAIN_CLASSES + half + 1)}
    files: dict[int, list[str]] = defaultdict(list)
    numbers = set()
    for row in (lists / "images.txt").read_text().splitlines():
        number, _, path = row.partition(" ")
        label = int(path[:3])
        if label in kept and (each is None or len(files[label]) < each):
            files[label].append(path)
            numbers.add(number)
    for name in ("images.txt", "image_class_labels.txt", "train_test_split.txt"):
        rows = (lists / name).read_text().splitlines(keepends=True)
        (tree / name).write_text("".join(row for row in rows if row.partition(" ")[0] in numbers))
    shutil.copy(lists / "classes.txt", tree)
    for label, paths in files.items():
        (tree / "images" / paths[0]).parent.mkdir(parents=True)
        for path, image in zip(paths, draw(label, len(paths), size, seed), strict=True):
            Image.fromarray(image).save(tree / "images" / path, "JPEG", quality=QUALITY)
    return len(numbers)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("folder", type=Path, help="folder in which CUB_200_2011/ is created")
    parser.add_argument("--classes", type=int, default=CLASSES)
    parser.add_argument("--each", type=int, default=None, help="maximum number of images per class")
    parser.add_argument("--size", type=int, default=SIZE, help="pixels per side")
    parser.add_argument("--seed", type=int, default=0)
    options = vars(parser.parse_args())
    begin = time.perf_counter()
    count = make(options.pop("folder"), **options)
    print(f"{count:,} images in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
