"""Deep metric learning from the command line: `dml COMMAND` or `python -m dmlcore COMMAND`.

Train, resume, evaluate and list runs; execute protocols, studies and searches. `dml COMMAND --help` lists the options
of a command.
"""

from __future__ import annotations

import io
import logging
import os
import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

from dmlcore.cli import (
    attended,
    embedding_sets,
    experiments,
    lessons,
    operations,
    own_folder,
    results,
    study,
    together,
    workers,
)
from dmlcore.cli import data as data_commands
from dmlcore.cli.options import Backend, CommandError, RunId, Runs, open_store, read_spec, say
from dmlcore.jobs import launch
from dmlcore.spec import keys, own_network
from dmlcore.storage import locks
from dmlcore.storage.home import HOME

BENCHMARKS = HOME / "benchmarks"
EX_TEMPFAIL = 75  # exit status of a temporary failure, as in sysexits.h, used if another process is working on the run

app = typer.Typer(
    help=__doc__, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
log = logging.getLogger("dmlcore")
# Let idle OpenMP threads sleep instead of spin, which halves the time of a step if other runs use the same cores.
# OpenMP reads this variable when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _settings() -> str:
    rows = [f"{key}: {field.description}" for key, field in keys().items()]
    return "Keys of a spec; set them as KEY=VALUE:\n\n\b\n" + "\n".join(rows)


@app.command(epilog=_settings())
def train(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help="SPEC.toml, the name of a shipped spec such as digits, a folder with one subfolder per class, or the "
            "id of an embedding set",
        ),
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="For example schedule.steps=100 loss.m=0.2")
    ] = None,
    processes: together.Processes = None,
    backend: Backend = "",
    runs: Runs = None,
) -> None:
    """Train a new run in the foreground. Prints the run id; Ctrl-C stops after the current step.

    Exit status: 0 finished, 1 failed, 130 stopped.
    """
    together.lead_or_follow()
    store = open_store(runs)
    chosen = own_folder.fit_to_folder(read_spec(spec, store), overrides or [])
    own_network.permit(chosen.model.name)  # the user has named it, or a file that contains it
    if (where := attended.require_backend(backend)) == "":
        from dmlcore.training.build import refuse_unusable  # imported late: it imports torch

        refuse_unusable(chosen)
    run = store.create(chosen)
    print(run.id, flush=True)
    workers.log_to(run)
    workers.finish(
        attended.train_on_backend(where, run, processes) if where else workers.train(run, processes=processes)
    )


@app.command()
def resume(run: RunId, processes: together.Processes = None, backend: Backend = "", runs: Runs = None) -> None:
    """Continue a run from its last checkpoint, in the foreground.

    Exit status: 0 finished, 1 failed, 75 another process is working on the run, 130 stopped.
    """
    together.lead_or_follow()
    opened = open_store(runs).open(run)
    workers.log_to(opened)
    if where := attended.require_backend(backend):
        workers.finish(attended.train_on_backend(where, opened, processes))
    else:
        workers.finish(workers.train(opened, resume=True, processes=processes))


@app.command()
def fork(
    run: RunId,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Changed settings, for example loss.name=triplet")
    ] = None,
    step: Annotated[int | None, typer.Option(help="Step of a kept checkpoint of RUN [default: the last one]")] = None,
    more: Annotated[int, typer.Option(help="Steps after that checkpoint; replaces schedule.steps")] = 0,
    leave_out: Annotated[
        list[str] | None, typer.Option(metavar="CLASS", help="Class to remove from the training split; repeatable")
    ] = None,
    without: Annotated[
        str, typer.Option(metavar="SAMPLE,SAMPLE", help="Samples to remove from the training split")
    ] = "",
    relabel: Annotated[
        list[str] | None, typer.Option(metavar="SAMPLE=CLASS", help="Sample to train on with another class; repeatable")
    ] = None,
    backend: Backend = "",
    runs: Runs = None,
) -> None:
    """Train a new run that continues from a checkpoint of RUN with changed settings, in the foreground."""
    store = open_store(runs)
    from dmlcore.training import build
    from dmlcore.training.forks import fork_spec

    parent = store.open(run)
    data = build.load_data(parent.spec)
    begin = max(fork_spec.fork_steps(parent), default=0) if step is None else step
    changes = [*(overrides or []), *([f"schedule.steps={begin + more}"] if more else [])]
    classes = [fork_spec.class_of(data, word) for word in leave_out or []]
    samples, pairs = fork_spec.parse_samples(without), fork_spec.parse_relabelling(data, relabel or [])
    spec = fork_spec.create(parent, begin, changes, leave_out=classes, without=samples, relabel=pairs)
    fork_spec.check(spec, data)
    made = store.create(spec)
    print(made.id, flush=True)
    workers.log_to(made)
    where = attended.require_backend(backend)
    workers.finish(attended.train_on_backend(where, made) if where else workers.train(made))


@app.command()
def evaluate(run: RunId, backend: Backend = "", runs: Runs = None) -> None:
    """Score the test split with the best weights of a run, and store the embeddings of that split."""
    opened = open_store(runs).open(run)
    workers.log_to(opened)
    where = attended.require_backend(backend)
    if where:
        message = attended.run_job_on_backend(where, opened, "evaluate")
    else:
        asked = launch.JobState(task="evaluate")
        message = launch.Job(opened).execute(lambda work: work.finished(workers.evaluate(opened)), asked).message
    print(f"{opened.id}: {message}")


for command in (
    *(study.study, study.attribute, results.claims, experiments.protocol, experiments.search, experiments.lint),
    *(experiments.events, results.export, results.eject, embedding_sets.import_, embedding_sets.embed),
    *(experiments.project, results.neighbours, results.threshold, results.conformance),
    *(operations.doctor, operations.clean, operations.serve),
):
    app.command(command.__name__.rstrip("_"))(command)
app.command(hidden=True)(together.follow)
app.command(hidden=True)(workers.work)
app.command("work-import", hidden=True)(embedding_sets.work_import)
app.add_typer(data_commands.app, name="data")
app.add_typer(lessons.app, name="lessons")


@app.command()
def recover(
    backend: Annotated[
        list[str] | None,
        typer.Option(help="Backend whose tasks may be resumed, in addition to those in $DML_BACKENDS; repeatable"),
    ] = None,
    runs: Runs = None,
) -> None:
    """Resume the runs, studies, protocols and jobs that were running or queued when the machine went down."""
    from dmlcore.experiments import recovery

    resumed = recovery.recover(open_store(runs), say, backend or [])
    print(f"{len(resumed)} resumed" if resumed else "no interrupted work found")


@app.command("example")
def pack_example(
    run: Annotated[str | None, typer.Argument(help="A finished run [default: train the spec glyphs]")] = None,
    runs: Runs = None,
) -> None:
    """Recreate the example run that ships with the lab: train it unless RUN is given, add all its maps, and pack it."""
    from dmlcore.experiments import example

    store = open_store(runs)
    chosen = store.open(run) if run else store.create(read_spec(example.SPEC))
    if not run:
        workers.log_to(chosen)
        workers.finish(workers.train(chosen))
    with chosen.lock():
        example.complete(chosen)
    path = example.pack(chosen)
    print(f"{path}: {path.stat().st_size:,} bytes")


@app.command("list")
def list_runs(runs: Runs = None) -> None:
    """List the runs, newest first."""
    store = open_store(runs)
    for run in store.list():
        state = run.state()
        name = f"  {run.spec.name}" if run.spec.name else ""
        print(f"{run.id:44} {run.status():10} {state.step:>7}/{state.steps:<7} {state.message}{name}")
    for run_id, reason in store.unreadable():
        print(f"{run_id:44} unreadable: {reason}")


@app.command()
def unpack(
    archive: Annotated[Path, typer.Argument(help="Archive of a data set")],
    into: Annotated[Path, typer.Argument(help="Output folder")],
) -> None:
    """Unpack an archive of a data set; links, paths outside the folder and decompression bombs are refused."""
    from dmlcore.data.files import archives

    print(archives.unpack(archive, into))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="gpu, or a script in benchmarks/ [default: list them]")] = "",
) -> None:
    """List the benchmarks, or run one with further arguments; `gpu` needs no checkout.

    `dml bench gpu` measures losses, training step, search and embedding on a GPU in at most eight minutes.
    """
    scripts = {path.stem: path for path in sorted(BENCHMARKS.glob("*.py")) if path.stem != "harness"}
    if name == "gpu":
        from dmlcore.bench import gpu

        raise typer.Exit(gpu.main(context.args))
    if not name:
        print(f"{'gpu':24} Losses, training step, search and embedding on a GPU, with ratios to their rivals.")
        for stem, path in scripts.items():
            print(f"{stem:24} {path.read_text().lstrip().splitlines()[0].strip(chr(34))}")
    elif name in scripts:
        sys.argv = [str(scripts[name]), *context.args]
        # scripts in benchmarks/ import the package `benchmarks` from the repository root
        sys.path.insert(0, str(HOME))
        runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    else:
        raise CommandError(f"unknown benchmark {name!r}; choose one of {', '.join(['gpu', *scripts])}")


def main() -> None:
    """Execute the command line; print an error as a single message without traceback, and exit with its status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Escape characters that the terminal's encoding lacks, as Python does for stderr: file names may not be valid
        # UTF-8.
        sys.stdout.reconfigure(errors="backslashreplace")
    own_network.remember_folder()
    try:
        app(prog_name="dml" if Path(sys.argv[0]).name == "dml" else "python -m dmlcore")
    except locks.Busy as busy:
        sys.exit(_complain(str(busy), EX_TEMPFAIL))
    except CommandError as failure:
        sys.exit(_complain(str(failure), failure.code))
    except ModuleNotFoundError as missing:
        extra = "pip install 'dml-lab[cluster]'"
        sys.exit(_complain(f"this command needs the package {missing.name}, which is not installed: {extra}", 1))
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(_complain(str(error), 1))
    except Exception as error:
        log.debug("unexpected error", exc_info=True)
        sys.exit(_complain(f"unexpected {type(error).__name__}: {error}", 1))


def _complain(message: str, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code
