"""Reader of Stanford Online Products: one text list of the training classes and one of the test classes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from dmlcore.data.dataset import DataError, Samples, reader
from dmlcore.data.files import lists
from dmlcore.data.files.image_table import ImageTable, PhotographSet, compact, samples

HEADER = "image_id class_id super_class_id path"
CATEGORIES = (  # super-classes 1 to 12
    "bicycle", "cabinet", "chair", "coffee_maker", "fan", "kettle", "lamp", "mug", "sofa", "stapler", "table", "toaster"
)  # fmt: skip

INFO = PhotographSet(
    name="sop",
    title="Stanford Online Products",
    sentence="Photographs of 22,634 products from eBay listings; half of the products train, the others test.",
    citation="H. O. Song et al.: Deep Metric Learning via Lifted Structured Feature Embedding. CVPR 2016.",
    folder="Stanford_Online_Products",
    other_folders=("online_products", "SOP"),
    markers=("Ebay_train.txt", "Ebay_test.txt", "Info_Files/Ebay_train.txt", "Info_Files/Ebay_test.txt"),
    images=tuple(f"{base}{name}_final" for base in ("", "images/") for name in CATEGORIES),
    archives=("Stanford_Online_Products.zip", "sop-lists.tar.gz"),
    url="ftp://cs.stanford.edu/cs/cvgl/Stanford_Online_Products.zip",
)


class _SopImage(NamedTuple):
    image_id: int
    class_id: int
    path: str
    place: str  # file:line


@reader(INFO)
def read(folder: Path, image_size: int | None, seed: int) -> Samples:
    """Read the samples, with inputs (N, 3, S, S) uint8 decoded when indexed; raise DataError if an image is missing."""
    images = folder / "images"
    return samples(INFO, images if images.is_dir() else folder, read_table(folder), image_size)


@lists.many_rows()
def read_table(folder: Path) -> ImageTable:
    """Join Ebay_train.txt and Ebay_test.txt in `folder` or in its subfolder Info_Files, without needing the images.

    Classes are the products; their names contain the original numbers. Raises DataError naming file and line.
    """
    where = folder / "Info_Files" if (folder / "Info_Files").is_dir() else folder
    train, test = _read_list(where / "Ebay_train.txt"), _read_list(where / "Ebay_test.txt")
    rows = train + test
    lists.require_distinct((f"image_id {row.image_id}", row.place) for row in rows)
    lists.require_distinct((row.path, row.place) for row in rows)
    first_train, first_test = ({row.class_id: row for row in reversed(split)} for split in (train, test))
    lists.require_disjoint(
        ((str(number), row.place) for number, row in first_train.items()),
        ((str(number), row.place) for number, row in first_test.items()),
    )
    train_ids, labels = compact([row.class_id for row in train])
    test_ids, test_labels = compact([row.class_id for row in test])
    path_of = {number: row.path for number, row in (*first_train.items(), *first_test.items())}
    category = {
        number: path.partition("/")[0].removesuffix("_final").replace("_", " ") for number, path in path_of.items()
    }
    return ImageTable(
        paths=tuple(row.path for row in rows),
        labels=np.concatenate([labels, test_labels + len(train_ids)]),
        class_names=tuple(f"{category[number]} {number}" for number in [*train_ids.tolist(), *test_ids.tolist()]),
        train_classes=len(train_ids),
    )


def _read_list(path: Path) -> list[_SopImage]:
    (line, header), *rows = lists.rows(path, INFO)
    if header.split() != HEADER.split():
        raise DataError(f"{path}:{line}: expected the header {HEADER!r}, got {header[:80]!r}")
    if not rows:
        raise DataError(f"{path} has a header but no rows; restore it from {INFO.url}")
    images = []
    pattern = r"\s+".join([lists.NUMBER] * 3) + r"\s+(.+)"
    for place, image_id, class_id, _, image in lists.parse(path, rows, pattern, "three numbers from 1 and a path"):
        if not lists.is_inside(image, parts=2):
            raise DataError(f"{place}: expected '<category>_final/<file>', got {image[:80]!r}")
        images.append(_SopImage(int(image_id), int(class_id), image, place))
    return images
