"""Command: study."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from dmlcore.cli.options import Backend, CommandError, Runs, numbers, stop_on_signal, store_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dmlcore.experiments.studies import Measured, StudyRequest
    from dmlcore.storage.runs import RunStore


def study(
    name: Annotated[
        str, typer.Argument(metavar="STUDY", help="A name, or STUDY.toml; several with commas between; left out: list")
    ] = "",
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="For every run, for example data.root=/data")
    ] = None,
    seeds: Annotated[str, typer.Option(help="For example 0,1,2 [default: as the study says]")] = "",
    only: Annotated[list[str] | None, typer.Option(help="This variant; may be given again for another")] = None,
    table: Annotated[bool, typer.Option("--table", help="Train nothing, print what is there")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write the results beside the study")] = False,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Train nothing: put the baselines into the written results")
    ] = False,
    backend: Backend = "",
    runs: Runs = None,
) -> None:
    """Make the runs of a study that are not done, one after another, and print what they reached.

    Ctrl-C stops after the current step; the same command goes on from there. With --table and no run here it is what
    ships with the lab. Studies that set methods beside baselines of their own end in one table of all of them.
    """
    from dmlcore.experiments import studies

    if not name:
        for known in studies.names():
            spec = studies.read(known)
            print(f"{known:24} {len(studies.expand(spec)):>3} runs, about {spec.minutes:g} min: {spec.question}")
        return
    names, store = list(dict.fromkeys(each for each in name.split(",") if each)), store_at(runs)
    if only and len(names) > 1:
        raise CommandError("--only: names variants of one study; give one")
    if baselines:
        for each in names:
            print(studies.add_baselines(each, store, report=lambda text: print(text, flush=True)))
        return
    requests = [
        studies.StudyRequest(study=each, overrides=overrides or (), seeds=numbers("--seeds", seeds), only=only or ())
        for each in names
    ]
    for request in requests:
        request.entries()  # a mistake in the last one is named before the first one trains
    reached = {}
    for request in requests:
        state = None
        if not table:
            say = partial(print, flush=True)
            state = studies.conduct(request, store, report=say, stop=stop_on_signal(), backend=backend)
        reached[request.study] = _print(request, store, shipped=table)
        if write:
            print(studies.write(request, store))
        if state and state.state != "done":
            print(state.message, file=sys.stderr)
            raise typer.Exit(130 if state.state == "cancelled" else 1)
    compared = [row for each in names for row in studies.comparisons.rows(studies.read(each), reached[each])]
    if compared:
        print(studies.comparisons.as_text(compared))


def _print(request: StudyRequest, store: RunStore, *, shipped: bool) -> Sequence[Measured]:
    """Print the scores of a study and its verdict; returns what was measured here, or what ships if nothing was."""
    from dmlcore.experiments import studies

    reached: Sequence[Measured] = studies.measured(request.entries(), store)
    if not reached and shipped and (written := studies.load(request.study)):
        known = {entry.digest() for entry in request.entries()}
        reached = [run for run in written.runs if run.digest in known]
        print(f"{request.study}: no run of it is done here; as measured {written.written} on {written.machine}")
    rows = studies.table(reached)
    print(studies.as_text([*studies.baseline_rows(reached), *rows]) if rows else "no run of it is done")
    if rows:
        print(studies.judge(studies.read(request.study), reached).text.replace("**", ""))
    if any(variant.against for variant in studies.read(request.study).variants):
        reached = [run.model_copy(update={"classes": studies.by_class(run, store)}) for run in reached]
    return reached
