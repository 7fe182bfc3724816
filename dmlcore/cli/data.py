"""Commands for data sets: data show, check, split, pack and download."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dmlcore.cli.options import CommandError

app = typer.Typer(
    help="List, show, check, split, pack and download data sets.",
    add_completion=False,
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a data set; `python -m dmlcore data` lists the names")
]
Root = Annotated[
    Path | None,
    typer.Option("--root", help="Folder of the data set or its archive [default: search the usual folders]"),
]
SplitBy = Annotated[str, typer.Option("--split", help="classes or samples [default: that of the data set]")]
Validate = Annotated[str, typer.Option("--validation", help="classes, samples or none")]
FoldCount = Annotated[
    int, typer.Option("--folds", help="Number of class folds, one of which validates; 0: last quarter of the classes")
]
Fold = Annotated[int, typer.Option("--fold", help="Number of the validation fold")]
Order = Annotated[str, typer.Option("--fold-order", help="contiguous or random")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of sample-wise splits, random folds and generated data")]


@app.callback(invoke_without_command=True)
def list_all(context: typer.Context) -> None:
    """List all data sets, with the sizes and folders of those that are available."""
    if context.invoked_subcommand is not None:
        return
    from dmlcore import data
    from dmlcore.data import report

    for name in data.names():
        info = data.describe(name)
        place = data.available(name)
        where = "" if not info.needs_files else str(place or "not found")
        counts = ""
        if place is not None and report.is_packed(place):
            counts = "packed"
        elif place is not None:
            presence = report.find(name)
            report.remember(presence)
            if presence.samples is not None:
                counts = f"{len(presence.samples.labels):,} samples of {len(presence.samples.class_names):,} classes"
            if packed := report.packed_size(presence.samples):
                counts += f", {packed}"
            if presence.problems:
                counts += f"{', ' if counts else ''}incomplete: see data show {name}"
        print(f"{name:20} {info.title:38} {counts:42} {where}".rstrip(), flush=True)


@app.command()
def show(
    name: Name,
    root: Root = None,
    split: SplitBy = "",
    validation: Validate = "",
    folds: FoldCount = 0,
    fold: Fold = 1,
    fold_order: Order = "contiguous",
    seed: Seed = 0,
    classes: Annotated[bool, typer.Option("--classes", help="List every class")] = False,
) -> None:
    """Show splits, published sizes, notes and problems; exits with status 1 if files are missing or damaged."""
    from dmlcore import data
    from dmlcore.data import report
    from dmlcore.data.files import sources

    info = data.describe(name)
    shown = report.report(name, root, **_split_options(split, validation, folds, fold, fold_order, seed))
    source = sources.source_of(name)
    print(f"{info.title}: {info.sentence}\n{info.citation}")
    if source:
        print(f"Terms: {source.terms}")
    if shown.located.place is None:
        data.locate(name, root)  # raises DataError, which lists the files and the folders searched
    if info.needs_files:
        print(f"Found: {shown.located.place}")
        if packed := report.packed_size(shown.located.samples):
            print(f"Packed into {packed}")
    report.remember(shown.located)
    # Print the splits under the given settings, then published sizes, classes and problems.
    for size in shown.splits:
        print(f"{size.name:22} {size.samples:>9,} samples of {size.classes:>7,} classes")
    for size in shown.compared:
        published = size.published
        assert published is not None
        verdict = size.deviation or "as published"
        print(f"{size.name:22} published {published.samples:,} of {published.classes:,}: {verdict}")
    if classes:
        for one in shown.classes:
            print(f"{one.number:>7} {one.samples:>7} {one.split:18} {one.name}")
    for note in shown.notes:
        print(f"note: {note}")
    for problem in shown.problems:
        print(f"problem: {problem}", file=sys.stderr)
    if shown.problems:
        raise typer.Exit(1)


@app.command()
def check(name: Name, root: Root = None) -> None:
    """Decode every image and find duplicates across classes and splits; exits with status 1 if one is unreadable."""
    from dmlcore.data import checks

    try:
        result, read = checks.run(name, root)
    except KeyboardInterrupt:
        raise CommandError("stopped", 130) from None
    print(f"{result.samples:,} samples read in {result.seconds:.1f} s, {result.failures:,} of them unreadable")
    for key, reason in result.unreadable:
        print(f"unreadable: {key}: {reason}", file=sys.stderr)
    for verdict in checks.verdicts(result, read.dataset) if read.dataset else read.problems:
        print(verdict)
    if result.failures:
        raise typer.Exit(1)


@app.command("split")
def save(
    name: Name,
    into: Annotated[Path, typer.Option("--into", help="Output file, .json or .csv")],
    root: Root = None,
    split: SplitBy = "",
    validation: Validate = "",
    folds: FoldCount = 0,
    fold: Fold = 1,
    fold_order: Order = "contiguous",
    seed: Seed = 0,
) -> None:
    """Write a JSON or CSV file with the split to which each sample belongs."""
    from dmlcore import data
    from dmlcore.data import report

    made = data.load(name, root=root, **_split_options(split, validation, folds, fold, fold_order, seed))
    report.save_split(made, into)
    print(into)


@app.command()
def pack(
    name: Name,
    root: Root = None,
    into: Annotated[
        Path | None, typer.Option("--into", help="New folder of the shards [default: NAME-shards in $DML_DATA or data]")
    ] = None,
    shard_mb: Annotated[int, typer.Option("--shard-mb", min=1, help="Size of a shard in megabytes")] = 256,
) -> None:
    """Pack a data set of image files into shards (tar files); run it again to continue after an interruption."""
    from dmlcore import data
    from dmlcore.data.files import locate, sources
    from dmlcore.data.shards import pack as packing

    target = (into or sources.default_folder() / locate.shards_folder(data.describe(name))).expanduser().absolute()
    try:
        size = packing.pack(name, data.read(name, root=root), target, shard_bytes=shard_mb * 10**6)
    except KeyboardInterrupt:
        raise CommandError("stopped; packed shards are kept. Run the same command again to continue.", 130) from None
    print(f"{target}: {size}; to use it, set data.root={target}")


@app.command()
def download(
    name: Name,
    into: Annotated[Path | None, typer.Option("--into", help="Output folder [default: $DML_DATA or ./data]")] = None,
) -> None:
    """Download a data set from its official address, verify and unpack it; run it again after an interruption."""
    from dmlcore.data.files import sources

    try:
        print(sources.download(name, into))
    except KeyboardInterrupt:
        raise CommandError(
            "cancelled; the downloaded part is kept. Run the same command again to continue.", 130
        ) from None


def _split_options(split: str, validation: str, folds: int, fold: int, fold_order: str, seed: int) -> dict[str, Any]:
    from dmlcore.data import Folds

    if fold_order not in ("contiguous", "random"):
        raise CommandError(f"--fold-order: choose contiguous or random, got {fold_order!r}")
    order: Any = fold_order
    chosen = Folds(folds, fold, order, seed) if folds else None
    return {"split": split or None, "validation": validation or None, "folds": chosen, "seed": seed}
