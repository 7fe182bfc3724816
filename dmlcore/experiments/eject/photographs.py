"""Images and published weights that the ejected file of a run with a frozen network reads."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from PIL import Image

from dmlcore import data
from dmlcore.data.files.image_table import ImageTable
from dmlcore.data.files.images import SUFFIXES
from dmlcore.data.readers import cub, image_folder
from dmlcore.data.splits import hold_out
from dmlcore.experiments.eject.support import EjectError
from dmlcore.models import pretrained
from dmlcore.storage.runs import Run

LIST = "images.txt"  # list of the images of CUB-200-2011, next to their folder
# lines of the template that list the images in the order of the data set
FROM_NAMES = 'paths = [path for path in sorted(Path(ROOT).rglob("*.*")) if path.suffix.lower() in SUFFIXES]'
FROM_LIST = f'paths = [Path(ROOT) / line.split()[1] for line in open(Path(ROOT).parent / "{LIST}")]'


def values_and_lines(run: Run) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the template needs to know about the images and weights of a run.

    Returns:
        The statements that define the constants of the template, by name, and the line of each choice that depends on
        the images, by name.

    Raises:
        DataError: If the data set is missing.
        EjectError: If an ejected file would read other images, or the weights are missing.
    """
    spec = run.spec.data
    folder = data.locate(spec.name, spec.root).resolve()
    is_cub = spec.name == "cub"
    table, root = (cub if is_cub else image_folder).read_table(folder), folder / "images" if is_cub else folder
    listed = is_cub and (folder / LIST).is_file()  # the list gives the order of the images, otherwise their names do
    weights = pretrained.pinned(run.spec.model.name)
    path = pretrained.find(weights) if weights else None
    if path is None:
        raise EjectError(
            f"{run.id}: the weights of {run.spec.model.name} are not on this machine; eject it where it was trained"
        )
    reason = _unusual_listing(root, listed, table) or _unusual_image(root, table)
    if np.bincount(table.labels).min() < run.spec.batch.samples:
        reason = f"has classes with fewer images than batch.samples={run.spec.batch.samples}"
    if reason:
        raise EjectError(f"{run.id}: cannot be ejected because {root} {reason}")
    info, train = data.describe(spec.name), np.arange(table.train_classes)
    kept = len(hold_out(train, train, spec.validation or info.validation, run.spec.seed)[0])
    classes = (0, kept, len(train), len(table.class_names))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    values = {
        "ROOT": f'ROOT = "{root}"',
        "CLASSES": f"CLASSES = {classes}  # bounds of the training, validation and test classes",
        "WEIGHTS": f'WEIGHTS = "{path}"',
        "WEIGHTS_DIGEST": f'WEIGHTS_DIGEST = "{digest}"  # SHA-256',
        "IMAGE_SIZE": f"IMAGE_SIZE = {spec.image_size or info.image_size or 0}",
    }
    return values, {"data": FROM_LIST if listed else FROM_NAMES}


def _unusual_listing(root: Path, listed: bool, table: ImageTable) -> str:
    """Return why an ejected file would not list the images of the data set; "" if it lists them in the same order."""
    if any(character in str(root) for character in '"\\\n'):
        return "has a name with a quote or a backslash"
    if listed:
        paths = [root / line.split()[1] for line in (root.parent / LIST).read_text().splitlines()]
    else:
        paths = [path for path in sorted(root.rglob("*.*")) if path.suffix.lower() in SUFFIXES]
    labels = np.unique([path.relative_to(root).parts[0] for path in paths], return_inverse=True)[1]
    same = paths == [root / path for path in table.paths] and np.array_equal(labels, table.labels)
    return "" if same and (np.diff(labels) >= 0).all() else "is not a plain folder with one folder of images per class"


def _unusual_image(root: Path, table: ImageTable) -> str:
    """Return why an ejected file would decode an image differently from dmlcore; "" if it decodes all equally."""
    for path in table.paths:
        with Image.open(root / path) as image:
            long, short = max(image.size), min(image.size)
            if long > 4 * short or image.has_transparency_data or image.mode.startswith("I"):
                return f"holds an image that is transparent, longer than 4:1 or has 16 bits per pixel, {path}"
    return ""
