"""A run whose class and file names are hostile, ready to export."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlcore.data import Dataset
from dmlcore.inspection import export, neighbours
from dmlcore.inspection.maps import maps
from dmlcore.inspection.maps.settings import Settings
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunStore

NAMES = (
    "<img src=http://evil.test/a.png onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "![x](http://evil.test/b.png) [y](javascript:alert(3))",
    "$\\href{http://evil.test}{x}$",
    "abc\u202egnp.exe \u2067\u05d0",
    "tab\there\nline \"quoted\" 'single' &amp; =1+1",
)
EACH = 6


def image(index: int) -> np.ndarray:
    """Return an image with a unique colour, so that a mixed-up image is detected."""
    return np.full((12, 10, 3), (index * 7 % 256, index * 31 % 256, index * 97 % 256), np.uint8)


def dataset() -> Dataset:
    """Return 36 test samples of six classes, indices 36 to 71, with file names as hostile as the class names."""
    labels = np.tile(np.repeat(np.arange(len(NAMES)), EACH), 2)
    images = np.stack([image(i) for i in range(len(labels))])
    return Dataset(
        name="digits",
        inputs=images.transpose(0, 3, 1, 2),
        labels=labels,
        class_names=NAMES,
        splits={"train": np.arange(36), "validation": np.arange(0), "test": np.arange(36, 72)},
        image=image,
        notes=(),
        keys=[f"{NAMES[label]}/{i}.jpg" for i, label in enumerate(labels)],
    )


def make(root: Path, *, gallery: bool = False) -> tuple[Run, Dataset, export.EmbeddingTable]:
    """Return the run with 5-dimensional embeddings and a map, and its table of all samples."""
    run, data = RunStore(root).create(RunSpec(name=NAMES[1])), dataset()
    random = np.random.default_rng(3)
    indices = data.splits["test"]
    labels = data.labels[indices]
    embeddings = (random.normal(size=(6, 5))[labels] + random.normal(size=(36, 5))).astype(np.float32)
    more = {"is_gallery": np.arange(36) % 3 == 0} if gallery else {}
    source = run.path / "embeddings" / f"{'ab' * 32}.npz"
    np.savez(source, embeddings=embeddings, labels=labels, indices=indices, **more)
    maps.keep(
        maps.path_of(source, Settings(method="pca")),
        {"settings": Settings(method="pca").to_json(), "quality": None},
        points=embeddings[:, :2],
        perplexity=np.array(np.nan),
    )
    return run, data, export.table(run, source, neighbours.read(source), data)
