"""Command `export`, which writes results of a run to files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dmlcore.cli.options import CommandError, RunId, Runs, open_store


def export(
    run: RunId,
    to: Annotated[
        Path | None,
        typer.Option(
            help="NAME.safetensors (weights), .onnx (network), .npz or .parquet (embeddings), .html (report), .csv "
            "(map), or a new folder for TensorBoard's projector"
        ),
    ] = None,
    onnx: Annotated[Path | None, typer.Option(help="Same as --to for a file NAME.onnx")] = None,
    split: Annotated[str, typer.Option(help="Split of the exported embeddings: train, validation or test")] = "test",
    selection: Annotated[
        str, typer.Option(help="Id of a selection, as in the address of a page [default: all samples]")
    ] = "",
    runs: Runs = None,
) -> None:
    """Export weights, embeddings, a report, a map or a projector folder of a run. A failed export leaves no file."""
    from dmlcore.experiments import protocols
    from dmlcore.inspection import export as exporting
    from dmlcore.inspection import selections

    given = [path for path in (to, onnx) if path is not None]
    if len(given) != 1:
        raise CommandError("give one file: --to FILE, or --onnx FILE")
    if onnx is not None and onnx.suffix != ".onnx":
        raise CommandError(f"--onnx {onnx}: give a file that ends in .onnx")
    source = open_store(runs).open(run)
    chosen = selections.load(source, selection) if selection else None
    if selection and chosen is None:
        raise CommandError(f"--selection {selection}: the run has no such selection")
    remarks = protocols.remarks(source.spec)
    indices = None if chosen is None else chosen.indices
    print(exporting.write(source, given[0], indices, split=split, remarks=remarks, report=_warn))


def _warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
