"""Commands `doctor`, `clean` and `serve`, for operators of the app."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict
from typing import Annotated, Any

import typer

from dmlcore.cli.options import CommandError, Runs, open_store

_SIGN = {"good": "ok  ", "note": "note", "fault": "FAIL"}
MB = 1e6
Days = float | None


def _days(name: str, what: str) -> Any:
    return typer.Option(name, metavar="DAYS", min=0, help=what)


def doctor(
    runs: Runs = None,
    port: Annotated[int, typer.Option(help="Port of the app")] = 8501,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line")] = False,
) -> None:
    """Check the machine, GPUs, packages, run store, data sets, weights and port; exits with status 1 on a fault."""
    from dmlcore.monitoring.doctor import examine  # imported late, as it imports many packages

    faults = 0
    for diagnosis in examine(open_store(runs), port):
        faults += diagnosis.verdict == "fault"
        if as_json:
            print(json.dumps(asdict(diagnosis)), flush=True)
        else:
            print(f"{_SIGN[diagnosis.verdict]}  {diagnosis.subject:9} {diagnosis.what}", flush=True)
            if diagnosis.remedy:
                print(f"{'':16}→ {diagnosis.remedy}", flush=True)
    if faults:
        raise typer.Exit(1)


def clean(
    runs: Runs = None,
    old_runs: Annotated[Days, _days("--old-runs", "Runs without a write for at least this long")] = None,
    states: Annotated[str, typer.Option(help="States of runs that may be removed")] = "done,failed,cancelled,lost",
    keep: Annotated[int, typer.Option(min=0, help="Number of newest runs that always stay")] = 0,
    old_checkpoints: Annotated[
        Days, _days("--old-checkpoints", "All but the last checkpoint of runs finished at least this long ago")
    ] = None,
    unused_cache: Annotated[Days, _days("--unused-cache", "Cache entries unused for at least this long")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove the listed items")] = False,
    date: Annotated[
        str, typer.Option(metavar="YYYY-MM-DD", help="Today's date, to confirm the clock where --yes requires it")
    ] = "",
) -> None:
    """List the runs and files that the given rules select for removal, oldest first; with --yes, remove them.

    Some runs are never removed: those that are running, those with a note, tags or saved views, and those with forks.
    If nothing has been removed or written for half a year, the clock may be wrong, and --yes requires --date.
    """
    from dmlcore.monitoring import retention

    try:
        rules = retention.Rules(old_runs, tuple(states.split(",")), keep, old_checkpoints, unused_cache)
    except ValueError as error:
        raise CommandError(f"{error}; give --old-runs, --old-checkpoints or --unused-cache an age in days") from None
    if date not in ("", retention.today()):
        raise CommandError(
            f"--date {date}: the clock of this machine says {retention.today()}; correct the clock first"
        )
    store = open_store(runs)
    removals = retention.plan(store, rules)
    for removal in removals:
        print(f"{removal.age:7.1f} days {removal.size / MB:10,.1f} MB  {removal.what}")
    total = sum(removal.size for removal in removals)
    if not yes:
        print(f"{len(removals)} items, {total / MB:,.1f} MB; nothing was removed. Use --yes to remove them.")
        return
    if not date and (doubt := retention.check_clock(store)):
        raise CommandError(f"{doubt}; nothing was removed. If the date is right, add --date {retention.today()}")
    retention.record_removal(store)
    stayed = [(removal, why) for removal, why in retention.apply(removals) if why]
    for removal, why in stayed:
        print(f"not removed: {removal.what}: {why}")
    gone = total - sum(removal.size for removal, _ in stayed)
    print(f"{len(removals) - len(stayed)} removed, {gone / MB:,.1f} MB")
    if stayed:
        raise typer.Exit(1)


def serve(
    port: Annotated[int, typer.Option(help="Port of the first server", min=1, max=65_535)] = 8501,
    address: Annotated[
        str, typer.Option(help="Address to listen on; with 0.0.0.0 other machines can connect, with the token")
    ] = "127.0.0.1",
    workers: Annotated[
        int, typer.Option(help="Number of servers on consecutive ports, behind a proxy", min=1, max=64)
    ] = 1,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Offer Prometheus metrics at /api/metrics, with the token")
    ] = False,
    json_log: Annotated[bool, typer.Option("--json-log", help="Log one JSON object per line")] = False,
    runs: Runs = None,
) -> None:
    """Serve the app and restart servers that crash; Ctrl-C or SIGTERM stops all of them.

    /_stcore/health responds when a server is running; /api/ready responds 503 until the server has loaded all modules.
    """
    from dmlcore.jobs import servers

    if port + workers - 1 > 65_535:
        raise CommandError(f"--port {port} leaves no room for {workers} servers: the last port is 65535")
    store = open_store(runs)
    settings = {"DML_RUNS": str(store.root), "DML_WARM": "all"}
    settings |= {"DML_METRICS": "1"} if metrics else {}
    settings |= {"DML_LOG": "json"} if json_log else {}
    code = servers.serve(address, range(port, port + workers), settings, token=secrets.token_hex(24))
    raise typer.Exit(code)
