"""Commands `protocol`, `search`, `lint`, `events` and `project`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dmlcore.cli import attended
from dmlcore.cli.options import (
    Backend,
    CommandError,
    RunId,
    Runs,
    exit_unless_done,
    open_store,
    parse_integers,
    read_spec,
    say,
    stop_on_signal,
)
from dmlcore.inspection.maps.settings import DEVICES, METHODS, Settings
from dmlcore.jobs.backends import backend as backends
from dmlcore.jobs.launch import Job, JobState
from dmlcore.storage.runs import Run
from dmlcore.storage.task import Progress


def protocol(
    name: Annotated[str, typer.Argument(metavar="PROTOCOL", help="Name or PROTOCOL.toml; omit it to list all")] = "",
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Override in every run; KEY= restores the default"),
    ] = None,
    data: Annotated[str, typer.Option(help="Data set, for example CUB or Cars196 [default: the protocol's]")] = "",
    loss: Annotated[str, typer.Option(help="Name in the protocol or the catalogue [default: the protocol's]")] = "",
    fold: Annotated[str, typer.Option(help="Folds, for example 1,2 [default: the protocol's]")] = "",
    repeats: Annotated[int, typer.Option(help="Runs per fold, with seeds 0, 1, ... [default: the protocol's]")] = 0,
    seeds: Annotated[str, typer.Option(help="Seeds, for example 0,1,2; replaces --repeats")] = "",
    table: Annotated[bool, typer.Option("--table", help="Print existing results without training")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the planned runs without training")] = False,
    backend: Backend = "",
    runs: Runs = None,
) -> None:
    """Train the unfinished runs of a protocol one after another, and summarise results as in its publication.

    Ctrl-C stops after the current step; run the same command again to continue.
    """
    from dmlcore.experiments import protocols
    from dmlcore.monitoring import comparability

    if not name:
        for known in protocols.names():
            spec = protocols.read(known)
            print(f"{known:24} {spec.sentence}\n{'':24} {spec.source}; chosen by {spec.selection}")
        return
    if repeats < 0 or (repeats and seeds):
        raise CommandError("--repeats: give a positive number, and not both --repeats and --seeds")
    request = protocols.ProtocolRequest(
        protocol=name,
        data=data,
        loss=loss,
        overrides=tuple(overrides or ()),
        folds=parse_integers("--fold", fold),
        seeds=parse_integers("--seeds", seeds) or tuple(range(repeats)),
    )
    # Print the plan for a dry run, otherwise execute the runs and summarise them.
    entries = request.entries()
    if dry_run:
        print(protocols.describe(request, entries))
        return
    store = open_store(runs)
    state = None
    if not table:
        state = protocols.conduct(request, store, report=say, stop=stop_on_signal(), backend=backend)
    place = protocols.place_of(request, store, entries)
    results = protocols.collect(request, entries, store, before=protocols.load(place.path), report=say)
    if results.runs:
        print(protocols.as_text(results, *protocols.printed_rows(request, entries)))
        print(protocols.write(results, place.path))
    else:
        print("no finished run")
    # After the results, print warnings about settings that limit the conclusions.
    if warnings := comparability.lint_protocol_runs([entry.spec for entry in entries]):
        print(comparability.as_text(warnings))
    exit_unless_done(state)


def lint(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run ids, or SPEC.toml files")], runs: Runs = None
) -> None:
    """List differences that make runs incomparable; exits with status 1 if there are any."""
    from dmlcore.monitoring import comparability

    store = open_store(runs)
    specs = [read_spec(each) if each.endswith(".toml") else store.open(each) for each in run]
    warnings = comparability.lint(specs)
    print(comparability.as_text(warnings) if warnings else "found no difference that makes these runs incomparable")
    if any(warning.severity == "incomparable" for warning in warnings):
        raise typer.Exit(1)


def search(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC", help="SPEC.toml, or the name of a spec or of a ready search; omit it to list ready searches"
        ),
    ] = "",
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=...",
            help="loss.m=0.01..1:log (a range; :7: points of a grid), batch.samples=2,4,8 (a choice), or KEY=VALUE",
        ),
    ] = None,
    on: Annotated[
        str, typer.Option(help="SPEC.toml or name of a spec that replaces the protocol of a ready search")
    ] = "",
    method: Annotated[
        str, typer.Option(help="random, grid, each (one key at a time, then all best values together), tpe or gp")
    ] = "random",
    trials: Annotated[int, typer.Option(help="Trials of all workers together [default: 20, or the whole grid]")] = 0,
    name: Annotated[str, typer.Option(help="Name of the search [default: the spec's]")] = "",
    seed: Annotated[int, typer.Option(help="Seed of the sampled points; the seed of the runs is part of the spec")] = 0,
    storage: Annotated[
        str, typer.Option(help="URL, or a file NAME.journal [default: .searches/NAME.journal or .db of the runs]")
    ] = "",
    table: Annotated[bool, typer.Option("--table", help="Print existing results without training")] = False,
    backend: Backend = "",
    runs: Runs = None,
) -> None:
    """Search for the hyper-parameters with the highest validation MAP@R.

    Run the same command again to continue, or at the same time to add a worker. Ctrl-C stops after the current step.
    Each trial is an ordinary run; the spec of the best trial is written as TOML.
    """
    from dmlcore.experiments import search as searching
    from dmlcore.experiments.search import ready

    if not spec:
        for known in ready.names():
            print(f"{known:32} {ready.read(known).title}\n{'':32} {ready.read(known).source}")
        return
    store = open_store(runs)
    more: dict[str, Any] = {"trials": trials or None, "seed": seed}
    name = name or "-".join(Path(word).stem.lower() for word in (spec, on) if word)[:40]
    if spec in ready.names():
        chosen = ready.read(spec)
        print("\n".join(chosen.remarks))
        wanted = ready.build_space(chosen, read_spec(on) if on else None, keys or [], name, **more)
    elif on:
        raise CommandError(f"--on: {spec} is not a ready search; choose one of {', '.join(ready.names())}")
    else:
        wanted = searching.prepare(read_spec(spec), keys or [], name, method=method, **more)
    whole = True
    if not table:
        where = backends.create_backend(backend)
        storage = storage or searching.storage_of(wanted, store, many_nodes=where.max_concurrent > 1)
        whole = searching.conduct(wanted, store, storage=storage, report=say, stop=stop_on_signal(), where=where)
    rows = searching.trials(wanted, store, storage)
    print(searching.as_text(rows, searching.validation_baselines(rows, store)))
    if wanted.method == "each" and (better := searching.optima(rows)):
        print(
            "single changes that improve on the base: " + ", ".join(f"{key}={value}" for key, value in better.items())
        )
    if best := searching.best(wanted, rows):
        print(searching.write_best(best, wanted, store))
    if not whole:
        raise typer.Exit(130)


def events(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run ids, as printed by train and list")],
    into: Annotated[Path | None, typer.Option(help="Folder of the event files [default: events in each run]")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Update every few seconds until the runs have ended")
    ] = False,
    runs: Runs = None,
) -> None:
    """Write or update TensorBoard event files of runs; safe during training."""
    from dmlcore.monitoring import tensorboard

    store = open_store(runs)
    chosen = [store.open(name) for name in run]
    stop = stop_on_signal() if follow else lambda: True
    for folder in tensorboard.follow(chosen, into, stop=stop):
        print(folder)


def project(
    run: RunId,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}")] = "tsne",
    perplexity: Annotated[float, typer.Option(help="t-SNE: effective number of neighbours, above 1")] = 30.0,
    iterations: Annotated[int, typer.Option(help="t-SNE, UMAP: 100 to 5000")] = 400,
    neighbours: Annotated[int, typer.Option(help="UMAP: 2 to 1000")] = 15,
    min_dist: Annotated[float, typer.Option(help="UMAP: minimum distance of points on the map, 0 to 1")] = 0.1,
    seed: Annotated[int | None, typer.Option(help="Seed [default: that of the run]")] = None,
    device: Annotated[str, typer.Option(help="t-SNE, UMAP: cpu, or cuda with cuML")] = "cpu",
    over_training: Annotated[
        bool, typer.Option("--over-training", help="Compute aligned maps of all kept checkpoints, on the CPU")
    ] = False,
    backend: Backend = "",
    runs: Runs = None,
) -> None:
    """Compute a two-dimensional map of the embeddings of a run, unless it already exists."""
    chosen = open_store(runs).open(run)
    if method not in METHODS:
        raise CommandError(f"--method: choose one of {', '.join(METHODS)}, got {method!r}")
    if device not in DEVICES or (device != "cpu" and over_training):
        raise CommandError(f"--device: choose cpu, or cuda without --over-training; got {device!r}")
    settings = Settings(
        method=method,
        device=device,
        perplexity=perplexity,
        iterations=iterations,
        neighbours=neighbours,
        min_dist=min_dist,
        seed=chosen.spec.seed if seed is None else seed,
    )
    asked = JobState(
        task="project-over-training" if over_training else "project", more=("--settings", settings.to_json())
    )
    if where := attended.require_backend(backend):
        say(attended.run_job_on_backend(where, chosen, asked.task, settings.to_json()))
        return
    Job(chosen).execute(lambda progress: progress.finished(make_map(chosen, settings, over_training, progress)), asked)


def make_map(run: Run, settings: Settings | None, over_training: bool, progress: Progress[JobState]) -> str:
    """Compute a map of a run or, with `over_training`, aligned maps of its kept checkpoints.

    Prints the path and quality of the result, and returns a summary. The caller must hold the lock of the run.
    """

    def tell(done: float, words: str) -> None:
        progress.report(words, done, 1.0)

    if over_training:
        from dmlcore.inspection.maps import trajectory

        path = trajectory.make(run, settings, tell)
        movement = trajectory.read(path)
        say(f"{path}\n{movement.how}")
        for step, measured in zip(movement.steps, movement.quality, strict=True):
            say(f"step {step:>8}: {measured.words if measured else 'too few points to measure'}")
    else:
        from dmlcore.inspection.maps import maps

        path = maps.make(run, settings, tell)
        drawn = maps.read(path)
        say(f"{path}\n{drawn.words}: {drawn.quality.words if drawn.quality else 'too few points to measure'}")
    return f"wrote the map {path.name}"
