"""Generator of docs/embeddings/, an example of an embedding set: vectors, labels and images of 500 digits.

Run `python -m docs.make_embeddings [--to FOLDER]`. A network is trained on half of the digits with the shipped spec;
the example holds the embeddings of samples that it was not trained on.
"""

from __future__ import annotations

import argparse
import csv
import io
import zipfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from dmlcore.spec import RunSpec
from dmlcore.training import build, loop
from dmlcore.training.batches import embed
from dmlcore.typing import Array, Ints

FOLDER = Path(__file__).resolve().parent / "embeddings"
SAMPLES, SIDE = 500, 16
SPEC = RunSpec().with_overrides(
    [
        *("data.name=digits", "data.split=samples", "data.validation=samples", "device=cpu"),
        *("model.embedding_dim=32", "schedule.steps=40"),
    ]
)
TIME = (2026, 1, 1, 0, 0, 0)  # of the files in the archive, so that it is reproducible


def write(folder: Path, vectors: Array, names: list[str], images: list[Array]) -> None:
    """Write the files of an embedding set: digits.npy (N, D), digits.csv with file and label, and digits.zip."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "digits.npy", vectors)
    with (
        open(folder / "digits.csv", "w", newline="") as text,
        zipfile.ZipFile(folder / "digits.zip", "w") as packed,
    ):
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["file", "label", "ink"])
        for number, (name, pixels) in enumerate(zip(names, images, strict=True)):
            file = f"{number:03}.png"
            table.writerow([file, name, f"{pixels.mean() / 255:.3f}"])
            png = io.BytesIO()
            grey = Image.fromarray(pixels[..., 0] if pixels.ndim == 3 else pixels)
            grey.resize((SIDE, SIDE), Image.Resampling.NEAREST).quantize(16).save(png, "PNG", optimize=True)
            packed.writestr(zipfile.ZipInfo(file, TIME), png.getvalue())


def main(arguments: list[str] | None = None) -> int:
    """Train, embed SAMPLES test samples, and write the files; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder to write")
    given = parser.parse_args(arguments)
    data = build.load_data(SPEC)
    state = build.build(SPEC, data, build.prepare_device("cpu", 1))
    state.model.train()
    for step in range(1, SPEC.schedule.steps + 1):
        torch.manual_seed(step)
        loop.step(state, step)
        state.progress.step = step
    rows: Ints = np.sort(np.random.default_rng(0).permutation(data.splits["test"])[:SAMPLES])
    vectors = embed(state.model, data, rows, state.device)
    assert data.image is not None
    names = [data.class_names[label] for label in data.labels[rows]]
    write(given.to, vectors, names, [data.image(int(row)) for row in rows])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
