"""Commands on results: `export`, `eject`, `neighbours`, `threshold`, `claims` and `conformance`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dmlcore.cli.options import CommandError, RunId, Runs, open_store, warn
from dmlcore.storage.home import HOME

PAGE = HOME / "docs" / "conformance.md"


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
    fmr: Annotated[
        float | None,
        typer.Option(
            help="Promised false match rate of the threshold in the metadata of weights or a network; 0 for no "
            "threshold [default: 0.01 if the run has validation classes]"
        ),
    ] = None,
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
    print(exporting.write(source, given[0], indices, split=split, fmr=fmr, remarks=remarks, report=warn))


def eject(
    run: RunId,
    to: Annotated[Path | None, typer.Option(help="FILE.py [default: RUN.py]")] = None,
    runs: Runs = None,
) -> None:
    """Write one readable Python file in plain PyTorch that retrains RUN to the same bytes, without dmlcore."""
    from dmlcore.experiments import eject as ejecting  # imported late: it imports torch

    source = open_store(runs).open(run)
    try:
        print(ejecting.write(source, to or Path(f"{source.id}.py")))
    except ejecting.EjectError as error:
        raise CommandError(str(error)) from None


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


def threshold(
    run: RunId,
    fmr: Annotated[float, typer.Option(help="Promised false match rate, for example 0.01 for 1 %")] = 0.01,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Also compute raw inputs, the untrained network and whitened features")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all values as JSON")] = False,
    runs: Runs = None,
) -> None:
    """Recommend the cosine similarity from which two samples count as the same class, and what to expect of it.

    The threshold is chosen on the validation classes and measured on the test classes. An embedding set uses its split
    column, or the first and the second half of its classes.
    """
    from dmlcore.inspection import thresholds  # imported late: it imports torch

    source = open_store(runs).open(run)
    chosen = {"": thresholds.threshold(source, fmr)}
    if baselines:
        chosen |= {name: thresholds.recommend(pair, fmr) for name, pair in thresholds.baselines(source).items()}
    if as_json:
        of = {name: json.loads(recommendation.to_json()) for name, recommendation in chosen.items()}
        print(json.dumps({"id": source.id, **of.pop(""), **({"baselines": of} if baselines else {})}))
        return
    print(thresholds.describe(chosen.pop("")))
    for name, recommendation in chosen.items():
        print(f"{name}: {recommendation.sentence}")


def claims(
    source: Annotated[str, typer.Argument(help="Only sources whose name contains this text, for example Can")] = "",
    verdict: Annotated[str, typer.Option(help="Only rows with this verdict, for example 'not run'")] = "",
) -> None:
    """Print the claims of the sources, our numbers from the shipped results, and the verdict on each claim."""
    from dmlcore.experiments import source_claims

    rows = [
        row
        for row in source_claims.table()
        if source.lower() in row.claim.source.lower() and verdict in ("", row.verdict)
    ]
    for row in rows:
        print(f"{row.verdict.upper()}: {row.claim.claim} ({row.claim.source}, {row.claim.where})")
        facts = [row.numbers, row.reason, f"{row.runs} runs, study {row.study} on {row.data}" if row.data else ""]
        print("".join(f"    {fact}\n" for fact in facts if fact))
    print(source_claims.summary(rows))


def conformance(
    library: Annotated[str, typer.Argument(metavar="LIBRARY", help="Name of the package; omit it to list all")] = "",
    write: Annotated[bool, typer.Option("--write", help="Write the library's section of docs/conformance.md")] = False,
) -> None:
    """Compare loss values and gradients of a library and of dmlcore with the published formulas; list deviations."""
    from dmlcore.conformance import CASES, LIBRARIES, LibraryMissing, run, table  # imported late: it imports torch

    if not library:
        for known in LIBRARIES.values():
            try:
                state = f"{known.version} is installed"
            except LibraryMissing:
                state = f"pip install {known.name}"
            print(f"{known.name:28} {len(known.calls):>3} cases, {state}")
        return
    if library not in LIBRARIES:
        raise CommandError(f"the library {library!r} is not supported; choose {' or '.join(LIBRARIES)}")
    rows = run(CASES, LIBRARIES[library])
    print(table.as_text(rows))
    if write:
        PAGE.parent.mkdir(exist_ok=True)
        table.write(PAGE, LIBRARIES[library], rows)
        print(PAGE)
