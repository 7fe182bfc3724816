"""Commands `study` and `attribute`, which train missing runs of a study or of its attribution and print the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dmlcore.cli.options import (
    Backend,
    CommandError,
    Runs,
    exit_unless_done,
    open_store,
    parse_integers,
    say,
    stop_on_signal,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dmlcore.experiments.studies import Measured, StudyRequest
    from dmlcore.storage.runs import RunStore

Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Override in every run, for example data.root=/data")
]
Seeds = Annotated[str, typer.Option(help="Seeds, for example 0,1,2 [default: the study's]")]
Table = Annotated[bool, typer.Option("--table", help="Print existing results without training")]
Write = Annotated[bool, typer.Option("--write", help="Write the results next to the study")]


def study(
    name: Annotated[
        str,
        typer.Argument(metavar="STUDY", help="Name or STUDY.toml, several separated by commas; omit it to list all"),
    ] = "",
    overrides: Overrides = None,
    seeds: Seeds = "",
    only: Annotated[list[str] | None, typer.Option(help="Run only this variant; repeatable")] = None,
    table: Table = False,
    write: Write = False,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Add the baselines to the written results without training")
    ] = False,
    backend: Backend = "",
    runs: Runs = None,
) -> None:
    """Train the unfinished runs of a study one after another, and print the results.

    Ctrl-C stops after the current step; run the same command again to continue. With --table, the results that ship
    with the lab are printed if the store has no finished run of the study. Studies that compare methods with baselines
    print one joint table at the end.
    """
    from dmlcore.experiments import studies

    if not name:
        for known in studies.names():
            spec = studies.read(known)
            runs_of = studies.candidates.count_runs(studies.expand(spec))
            print(f"{known:24} {runs_of:>3} runs, about {spec.minutes:g} min: {spec.question}")
        return
    names, store = list(dict.fromkeys(each for each in name.split(",") if each)), open_store(runs)
    if only and len(names) > 1:
        raise CommandError("--only: variants belong to one study, but several studies were given; give one")
    if baselines:
        for each in names:
            print(studies.add_baselines(each, store, report=say))
        return
    requests = [
        studies.StudyRequest(
            study=each, overrides=overrides or (), seeds=parse_integers("--seeds", seeds), only=only or ()
        )
        for each in names
    ]
    for request in requests:
        request.entries()  # find mistakes in all studies before the first run is trained
    reached = {}
    for request in requests:
        state = None
        if not table:
            state = studies.conduct(request, store, report=say, stop=stop_on_signal(), backend=backend)
        reached[request.study] = _print(request, store, shipped=table)
        if write:
            print(studies.write(request, store, report=say))
        exit_unless_done(state)
    compared = [row for each in names for row in studies.comparisons.rows(studies.read(each), reached[each])]
    if compared:
        print(studies.comparisons.as_text(compared))


def _print(request: StudyRequest, store: RunStore, *, shipped: bool) -> Sequence[Measured]:
    """Print the scores and the conclusion of a study, and return its results.

    Only finished runs in `store` are used. If there are none and `shipped` is True, the results that ship with the lab
    are used instead.
    """
    from dmlcore.experiments import studies

    reached: Sequence[Measured] = studies.measured(request.entries(), store)
    if not reached and shipped and (written := studies.load(request.study)):
        known = {entry.digest() for entry in request.entries()}
        reached = [run for run in written.runs if run.digest in known]
        print(f"{request.study}: no finished run here; shipped results of {written.written} on {written.machine}")
    rows = studies.table(reached)
    print(studies.as_text([*studies.baseline_rows(reached), *rows]) if rows else "no finished run")
    if rows:
        spec = studies.read(request.study)
        print(studies.judge(spec, reached).text.replace("**", ""))
        promised = studies.promises.rows(spec, reached, studies.baseline_rows(reached))
        for shown in filter(None, (studies.selection.rows(reached), promised)):
            print(studies.comparisons.as_text(shown))
    if any(variant.against for variant in studies.read(request.study).variants):
        reached = [run.model_copy(update={"classes": studies.by_class(run, store)}) for run in reached]
    return reached


def attribute(
    name: Annotated[str, typer.Argument(metavar="STUDY", help="Name or STUDY.toml; omit it to list all")] = "",
    overrides: Overrides = None,
    seeds: Seeds = "",
    table: Table = False,
    write: Write = False,
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
    exit_unless_done(state)
