"""Command `import`, which stores embeddings that were computed elsewhere as an embedding set."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from dmlcore.cli.options import CommandError, Runs, open_store


def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Embeddings: .npy, .npz, .parquet, .arrow, .csv, .tsv or .safetensors"),
    ],
    labels: Annotated[
        Path | None,
        typer.Option(help="File with one row per vector: label, id, image, split and further columns (CSV, Parquet …)"),
    ] = None,
    images: Annotated[Path | None, typer.Option(help="Folder or .zip file with the images of the samples")] = None,
    name: Annotated[str, typer.Option(help="Name of the embedding set [default: that of FILE]")] = "",
    vectors: Annotated[str | None, typer.Option(help="Column or array with the vectors, if there are several")] = None,
    label: Annotated[
        str | None, typer.Option(help="Column with the labels; '' for none [default: found by name]")
    ] = None,
    ids: Annotated[str | None, typer.Option("--id", help="Column with unique ids [default: found by name]")] = None,
    image: Annotated[str | None, typer.Option(help="Column with image files [default: found by name]")] = None,
    split: Annotated[
        str | None, typer.Option(help="Column with train, validation, test [default: found by name]")
    ] = None,
    copy_images: Annotated[
        bool, typer.Option("--copy-images", help="Copy the images instead of referring to them")
    ] = False,
    normalize: Annotated[
        bool, typer.Option(help="Divide each vector by its length, so that distances order by cosine similarity")
    ] = True,
    open_: Annotated[
        bool, typer.Option("--open", help="Start the app if needed, and open the map in the browser")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print id, samples, classes and scores as JSON")] = False,
    runs: Runs = None,
) -> None:
    """Import embeddings from a file, with labels and images where there are any; prints the id of the embedding set.

    Afterwards the app shows the set on all Inspection pages, and `dml train ID` trains a network on it. Damaged files
    and rows are refused with their row, column and value; nothing is stored then.
    """
    from dmlcore.data.embedding_sets import files
    from dmlcore.data.embedding_sets.roles import Roles
    from dmlcore.experiments import embedding_sets, imports, show

    table = files.read_labelled(file, labels, vectors=vectors)
    guessed = Roles.guess(table.columns)
    given = {"label": label, "id": ids, "image": image, "split": split}
    for role, column in given.items():
        if column and column not in table.columns.column_names:
            known = ", ".join(table.columns.column_names) or "no columns besides the vectors"
            raise CommandError(f"--{role} {column}: there is no such column; the file has {known}")
    roles = replace(guessed, **{role: column or None for role, column in given.items() if column is not None})
    request = imports.ImportRequest(
        file=str(file),
        labels=None if labels is None else str(labels),
        images=None if images is None else str(images),
        vectors=vectors,
        **asdict(roles),
        name=name,
        normalize=normalize,
        copy_images=copy_images,
        image_roots=("/",),  # the user of the command line can read any of these files anyway
    )
    run = imports.create(open_store(runs), request, table, report=_report)
    stored = embedding_sets.of_run(run)
    if open_:
        show.open_app(run, report=_report)
    if not as_json:
        print(f"{run.id}: {run.state().message}")
        return
    row = run.scores().get("inputs", {})
    summary = {
        "id": run.id,
        "samples": len(stored.labels),
        "classes": len(stored.class_names) if stored.labelled else 0,
        "recall_at_1": row.get("recall_at", {}).get("1"),
        "map_at_r": row.get("map_at_r"),
    }
    print(json.dumps(summary))


def _report(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def work_import(folder: Path, runs: Runs = None) -> None:
    """Do an import in its folder; started by dmlcore.experiments.imports, which redirects the output to its log."""
    from dmlcore.experiments import imports

    imports.Import(folder).work(open_store(runs))
