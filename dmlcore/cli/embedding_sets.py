"""Commands that store an embedding set: `import`, from embeddings in files, and `embed`, from photographs."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from dmlcore.cli.options import CommandError, Runs, open_store, warn
from dmlcore.storage.runs import Run

Open = Annotated[bool, typer.Option("--open", help="Start the app if needed, and open the map in the browser")]
AsJson = Annotated[bool, typer.Option("--json", help="Print id, samples, classes and scores as JSON")]
REPORT_INTERVAL = 5.0  # seconds between two lines of progress of the same activity


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
    open_: Open = False,
    as_json: AsJson = False,
    runs: Runs = None,
) -> None:
    """Import embeddings from a file, with labels and images where there are any; prints the id of the embedding set.

    Afterwards the app shows the set on all Inspection pages, and `dml train ID` trains a network on it. Damaged files
    and rows are refused with their row, column and value; nothing is stored then.
    """
    from dmlcore.data.embedding_sets import files
    from dmlcore.data.embedding_sets.roles import Roles
    from dmlcore.experiments import imports

    table = files.read_labelled(file, labels, vectors=vectors)
    guessed = Roles.guess(table.columns)
    given = {"label": label, "id": ids, "image": image, "split": split}
    for role, column in given.items():
        if column and column not in table.columns.column_names:
            known = ", ".join(table.columns.column_names) or "no columns besides the vectors"
            raise CommandError(f"--{role} {column}: there is no such column; the file has {known}")
    roles = replace(guessed, **{role: column or None for role, column in given.items() if column is not None})
    if label is None:
        for note in roles.guess_notes(table.columns):
            warn(f"{note}; choose another with --label, or none with --label ''")
    if labels is not None and roles.label is None and label is None:
        known = ", ".join(table.columns.column_names)
        warn(f"No column looks like labels, so the set has none. Choose one with --label: {known}")
    request = imports.ImportRequest(
        file=str(file),
        labels=None if labels is None else str(labels),
        images=None if images is None else str(images),
        vectors=vectors,
        **asdict(roles),
        name=name,
        normalize=normalize,
        copy_images=copy_images,
        image_roots=("/",),  # a user of the command line can read these files anyway
    )
    run = imports.create(open_store(runs), request, table, report=warn)
    _finish(run, open_, as_json)


def embed(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder or .zip file of photographs; class folders give labels")
    ],
    network: Annotated[
        str, typer.Option(help="Network with published ImageNet weights, such as resnet50")
    ] = "efficientnet_lite0",
    labels: Annotated[
        Path | None,
        typer.Option(
            help="File with one row per photograph: its name, label, split and further columns (CSV, Parquet …)"
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column with the labels [default: found by name]")] = None,
    name: Annotated[str, typer.Option(help="Name of the embedding set [default: that of FOLDER and network]")] = "",
    open_: Open = False,
    as_json: AsJson = False,
    runs: Runs = None,
) -> None:
    """Embed a folder of photographs with a pretrained network; prints the id of the embedding set.

    Photographs that cannot be read are left out and named. The photographs stay where they are; those of a .zip file
    are copied into the set.
    """
    from dmlcore.experiments import imports
    from dmlcore.experiments.photographs import EmbedRequest

    request = EmbedRequest(
        photographs=str(folder),
        network=network,
        labels=None if labels is None else str(labels),
        label=label,
        name=name,
        image_roots=("/",),
    )
    _finish(imports.embed(open_store(runs), request, _Progress()), open_, as_json)


def _finish(run: Run, open_: bool, as_json: bool) -> None:
    """Open the map of a new embedding set if requested, and print its id and result."""
    from dmlcore.experiments import embedding_sets, show

    stored = embedding_sets.of_run(run)
    if open_:
        show.open_app(run, report=warn)
    else:
        warn("Its map is in the app under Inspection > Explore; with --open, this command opens it")
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


class _Progress:
    """Callback that prints progress to standard error, every REPORT_INTERVAL seconds and at the end of an activity."""

    def __init__(self) -> None:
        self._activity, self._last = "", 0.0

    def __call__(self, message: str, done: float = 0, total: float | None = None, **more: str) -> None:
        now = time.monotonic()
        if message == self._activity and done != total and now < self._last + REPORT_INTERVAL:
            return
        self._activity, self._last = message, now
        warn(f"{message}: {done:,} of {total:,}" if total and done else message)


def work_import(folder: Path, runs: Runs = None) -> None:
    """Do an import in its folder; started by dmlcore.experiments.imports, which redirects the output to its log."""
    from dmlcore.experiments import imports

    imports.Import(folder).work(open_store(runs))
