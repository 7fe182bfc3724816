"""Command `attribute`, which measures how much each open setting changes a contrast of a study."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from dmlcore.cli.options import Backend, Runs, open_store, parse_integers, stop_on_signal


def attribute(
    name: Annotated[str, typer.Argument(metavar="STUDY", help="Name or STUDY.toml; omit it to list all")] = "",
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Override in every run, for example data.root=/data")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Seeds, for example 0,1,2 [default: the study's]")] = "",
    table: Annotated[bool, typer.Option("--table", help="Print existing results without training")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write the results next to the study")] = False,
    backend: Backend = "",
    runs: Runs = None,
) -> None:
    """Vary each setting that the source of a study leaves open, and print how much a contrast of the study changes.

    The settings and the contrast are those of [attribution] in the study's file. Ctrl-C stops after the current step;
    run the same command again to continue. With --table, the results that ship with the lab are printed if the store
    has no finished run.
    """
    from dmlcore.experiments import attribution, studies

    if not name:
        for known in studies.names():
            if asked := studies.read(known).attribution:
                settings = ", ".join(setting.name for setting in asked.open)
                print(f"{known:24} about {asked.minutes:g} min: {asked.contrast}? Varies {settings}")
        return
    store, study = open_store(runs), studies.read(name)
    request = studies.StudyRequest(study=name, overrides=overrides or (), seeds=parse_integers("--seeds", seeds))
    state = None
    if not table:
        say = partial(print, flush=True)
        state = attribution.conduct(request, store, report=say, stop=stop_on_signal(), backend=backend)
    reached = attribution.measured(request, store)
    if not reached and table and (written := attribution.load(name)):
        print(f"{name}: no finished run here; shipped results of {written.written} on {written.machine}")
        reached = list(written.runs)
    rows = attribution.rows(study, reached)
    print(studies.comparisons.as_text(rows) if rows else "no finished run")
    if rows:
        print(attribution.summary(study, reached))
    if write:
        print(attribution.write(request, store))
    if state and state.state != "done":
        print(state.message, file=sys.stderr)
        raise typer.Exit(130 if state.state == "cancelled" else 1)
