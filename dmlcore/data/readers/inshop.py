"""Reader of In-shop Clothes Retrieval (DeepFashion): one list of training images, queries and gallery images."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from dmlcore.data.dataset import DataError, Samples, reader
from dmlcore.data.files import lists
from dmlcore.data.files.image_table import ImageTable, PhotographSet, samples
from dmlcore.data.files.lists import positive

LIST = "list_eval_partition.txt"
HEADER = "image_name item_id evaluation_status"
STATUSES = ("train", "query", "gallery")

INFO = PhotographSet(
    name="inshop",
    title="In-shop Clothes Retrieval",
    sentence="Photographs of 7,982 pieces of clothing; 3,997 train, the others are queries and gallery.",
    citation="Z. Liu et al.: DeepFashion: Powering Robust Clothes Recognition and Retrieval with Rich Annotations. "
    "CVPR 2016.",
    folder="In-shop Clothes Retrieval Benchmark",
    other_folders=("In-shop", "InShop", "inshop", "DeepFashion"),
    markers=tuple(f"{folder}{LIST}" for folder in ("Eval/", "", "Anno/")),
    images=("Img/img", "img", "Img/img_highres", "img_highres"),
    archives=("inshop-partition-surrogate.tar.gz",),
    url="https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html",
)


class _InshopImage(NamedTuple):
    path: str
    item: str
    status: str
    place: str  # file:line


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the samples, with inputs (N, 3, S, S) uint8 decoded when indexed; raise DataError if an image is missing."""
    table = read_table(folder)
    # img.zip may have been unpacked in Img/ or next to it. High-resolution images have the same folder structure.
    for base in INFO.images:
        trunk = folder / base
        if (trunk / table.paths[0]).is_file():
            return samples(INFO, trunk, table, image_size)
    return samples(INFO, folder / INFO.images[0], table, image_size)


@lists.many_rows()
def read_table(folder: Path) -> ImageTable:
    """Read the list in Eval/, Anno/ or `folder` itself, without needing the images.

    Paths are relative to img/. Classes are the clothing items, training items first. Raises DataError naming file and
    line.
    """
    places = [folder / "Eval" / LIST, folder / LIST, folder / "Anno" / LIST]
    path = next((place for place in places if place.is_file()), places[0])
    rows = _read_list(path)
    lists.require_distinct((row.path, row.place) for row in rows)
    is_train = np.array([row.status == "train" for row in rows])
    lists.require_disjoint(
        ((row.item, row.place) for row in rows if row.status == "train"),
        ((row.item, row.place) for row in rows if row.status != "train"),
    )
    items = [sorted({row.item for row in rows if (row.status == "train") == side}) for side in (True, False)]
    label = {item: number for number, item in enumerate(items[0] + items[1])}
    surrogate = (path.parent / "SURROGATE.txt", folder / "SURROGATE.txt")
    return ImageTable(
        paths=tuple(row.path for row in rows),
        labels=np.array([label[row.item] for row in rows], dtype=np.int64),
        class_names=tuple(label),
        train_classes=len(items[0]),
        gallery=~is_train & np.array([row.status == "gallery" for row in rows]),
        notes=tuple(
            f"the choice of queries is invented, see {file}; scores on it must never be reported"
            for file in surrogate
            if file.is_file()
        ),
    )


def _read_list(path: Path) -> list[_InshopImage]:
    (line, count), *rest = lists.rows(path, INFO)
    if positive(count) == 0:
        raise DataError(
            f"{path}:{line}: expected the number of images, got {count[:80]!r}; CelebA has a list of the same name, "
            f"which cannot be used here"
        )
    if not rest or rest[0].text.split() != HEADER.split():
        raise DataError(f"{path}:{rest[0].line if rest else line + 1}: expected the header {HEADER!r}")
    expected = f"'<image> <item> <{'|'.join(STATUSES)}>'"
    rows = [
        _image(*columns)
        for columns in lists.parse(path, rest[1:], rf"(\S+)\s+(\S+)\s+({'|'.join(STATUSES)})", expected)
    ]
    if len(rows) != int(count):
        raise DataError(
            f"{path}:{line}: announces {int(count):,} images, but {len(rows):,} rows follow; restore the list"
        )
    return rows


def _image(place: str, image: str, item: str, status: str) -> _InshopImage:
    names = image.split("/")
    if not lists.is_inside(image, parts=5) or names[0] != "img":
        raise DataError(f"{place}: expected 'img/<sex>/<category>/<item>/<file>', got {image[:80]!r}")
    if names[3] != item:
        raise DataError(f"{place}: the image is in the folder of item {names[3]!r}, but is listed as {item!r}")
    return _InshopImage("/".join(names[1:]), item, status, place)
