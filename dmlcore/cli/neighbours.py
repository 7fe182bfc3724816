"""Command `neighbours`, which searches the test split of a run for samples similar to given images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dmlcore.cli.options import RunId, Runs, open_store


def neighbours(
    run: RunId,
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE...", help="Image files")],
    k: Annotated[int, typer.Option("-k", help="Number of neighbours per image")] = 8,
    step: Annotated[int | None, typer.Option(help="Step of a kept checkpoint [default: the last evaluation]")] = None,
    invert: Annotated[
        bool, typer.Option("--invert", help="Invert the images: dark ink on white becomes light on black")
    ] = False,
    runs: Runs = None,
) -> None:
    """Print the test samples of a run that are most similar to the given images: rank, distance, index, class, file."""
    from dmlcore.inspection.index import Index

    index = Index.of_run(open_store(runs).open(run), step)
    distances, rows = index.search(list(images), k, invert=invert)
    _, data = index.network()
    for image, far, nearest in zip(images, distances, rows, strict=True):
        print(image)
        for rank, (distance, row) in enumerate(zip(far, nearest, strict=True), 1):
            sample = int(index.indices[row])
            where = f"  {data.files[sample]}" if data.files else ""
            print(f"{rank:4}  {distance:.4f}  {sample:7}  {data.class_names[index.labels[row]]!r}{where}")
