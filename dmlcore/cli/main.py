"""Command line: dml COMMAND, or python -m dmlcore COMMAND.

Train, resume, evaluate, list; protocols, studies and searches of many runs. See --help of each.
"""

from __future__ import annotations

import logging
import os
import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

from dmlcore.cli import conformance, experiments, export, lessons, neighbours
from dmlcore.cli import data as data_commands
from dmlcore.cli.options import CommandError, RunId, Runs, numbers, read_spec, stop_on_signal, store_at
from dmlcore.inspection.maps.settings import Settings
from dmlcore.jobs import device_queue, launch
from dmlcore.spec import keys
from dmlcore.storage import locks
from dmlcore.storage.home import HOME
from dmlcore.storage.run_directory import LOG
from dmlcore.storage.runs import Run, RunState
from dmlcore.storage.task import Progress

BENCHMARKS = HOME / "benchmarks"
EX_TEMPFAIL = 75  # sysexits.h: somebody else works on this run

app = typer.Typer(
    help=__doc__, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
log = logging.getLogger("dmlcore")
# Threads that wait without spinning: beside other runs on the same cores a step takes half the time. Read by OpenMP
# when torch is imported, hence here.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _settings() -> str:
    rows = [f"{key}: {field.description}" for key, field in keys().items()]
    return "Keys of a spec, settable as key=value:\n\n\b\n" + "\n".join(rows)


@app.command(epilog=_settings())
def train(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="SPEC.toml, or a name, for example digits")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="For example schedule.steps=100 loss.m=0.2")
    ] = None,
    runs: Runs = None,
) -> None:
    """Train in the foreground; prints the run id, exits 0 when finished. Ctrl-C stops after the current step."""
    chosen = read_spec(spec).with_overrides(overrides or [])
    from dmlcore.training.build import refuse_unusable  # late: it imports torch

    refuse_unusable(chosen)
    run = store_at(runs).create(chosen)
    print(run.id, flush=True)
    _log_to(run)
    _finish(_train(run))


@app.command()
def resume(run: RunId, runs: Runs = None) -> None:
    """Go on from the last checkpoint, in the foreground; exits 75 if another process works on the run."""
    opened = store_at(runs).open(run)
    _log_to(opened)
    _finish(_train(opened, resume=True))


@app.command()
def fork(
    run: RunId,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="What is otherwise, for example loss.name=triplet")
    ] = None,
    step: Annotated[int | None, typer.Option(help="A kept checkpoint of RUN [default: the last one]")] = None,
    more: Annotated[int, typer.Option(help="Steps from there on, in place of schedule.steps")] = 0,
    leave_out: Annotated[list[str] | None, typer.Option(metavar="CLASS", help="Not trained on any more")] = None,
    without: Annotated[str, typer.Option(metavar="SAMPLE,SAMPLE", help="Samples not trained on any more")] = "",
    relabel: Annotated[list[str] | None, typer.Option(metavar="SAMPLE=CLASS", help="Trained on as of CLASS")] = None,
    runs: Runs = None,
) -> None:
    """Go on from a checkpoint of a run with something changed, as a new run, in the foreground."""
    store = store_at(runs)
    from dmlcore.training import build
    from dmlcore.training.forks import fork_spec

    parent = store.open(run)
    data = build.load_data(parent.spec)
    begin = max(fork_spec.steps(parent), default=0) if step is None else step
    changes = [*(overrides or []), *([f"schedule.steps={begin + more}"] if more else [])]
    classes = [fork_spec.class_of(data, word) for word in leave_out or []]
    samples, pairs = fork_spec.numbers(without), fork_spec.relabelled(data, relabel or [])
    spec = fork_spec.make(parent, begin, changes, leave_out=classes, without=samples, relabel=pairs)
    fork_spec.check(spec, data)
    made = store.create(spec)
    print(made.id, flush=True)
    _log_to(made)
    _finish(_train(made))


@app.command()
def evaluate(run: RunId, runs: Runs = None) -> None:
    """Test the best weights of a run and write its embeddings."""
    opened = store_at(runs).open(run)
    _log_to(opened)
    asked = launch.JobState(task="evaluate")
    end = launch.Job(opened).work(lambda progress: progress.end(f"test MAP@R {_evaluate(opened)}"), asked)
    print(f"{opened.id}: {end.message}")


@app.command()
def study(
    name: Annotated[str, typer.Argument(metavar="STUDY", help="A name, or STUDY.toml; left out: list")] = "",
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
    runs: Runs = None,
) -> None:
    """Make the runs of a study that are not done, one after another, and print what they reached.

    Ctrl-C stops after the current step; the same command goes on from there.
    """
    from dmlcore.experiments import studies

    if not name:
        for known in studies.names():
            spec = studies.read(known)
            print(f"{known:24} {len(studies.expand(spec)):>3} runs, about {spec.minutes:g} min: {spec.question}")
        return
    store = store_at(runs)
    if baselines:
        print(studies.add_baselines(name, store, report=lambda text: print(text, flush=True)))
        return
    request = studies.StudyRequest(
        study=name, overrides=overrides or (), seeds=numbers("--seeds", seeds), only=only or ()
    )
    entries = request.entries()
    state = None
    if not table:
        state = studies.conduct(request, store, report=lambda text: print(text, flush=True), stop=stop_on_signal())
    reached = studies.measured(entries, store)
    rows = studies.table(reached)
    print(studies.as_text([*studies.baseline_rows(reached), *rows]) if rows else "no run of it is done")
    if rows:
        print(studies.judge(studies.read(name), reached).text.replace("**", ""))
    if write:
        print(studies.write(request, store))
    if state and state.state != "done":
        print(state.message, file=sys.stderr)
        raise typer.Exit(130 if state.state == "cancelled" else 1)


app.command()(experiments.protocol)
app.command()(experiments.search)
app.command()(experiments.lint)
app.command()(experiments.events)
app.command()(export.export)
app.command()(experiments.project)
app.command()(neighbours.neighbours)
app.command()(conformance.conformance)
app.add_typer(data_commands.app, name="data")
app.add_typer(lessons.app, name="lessons")


@app.command(hidden=True)
def work(task: str, run: str, runs: Runs = None, settings: str = "") -> None:
    """What dmlcore.jobs.launch starts: one task on one run; its output is the log of the run."""
    _log_to(None)
    store = store_at(runs)
    opened = store.open(run)
    if task == "train":
        _finish(_train(opened, wait=True))
        return

    def in_turn(progress: Progress[launch.JobState]) -> launch.JobState:
        def say_who_is_before() -> bool:
            place = device_queue.waiting(store, job=True).get(run)
            ahead = place.ahead + 1 if place else 1
            progress.say(f"waiting, {ahead} job{'s' if ahead > 1 else ''} before it")
            return False

        with device_queue.turn(opened, wait=True, given_up=say_who_is_before, job=True):
            progress.say("working")
            return progress.end(_job(opened, task, settings, progress))

    asked = launch.JobState.model_validate({"task": task, "more": ("--settings", settings) if settings else ()})
    launch.Job(opened).work(in_turn, asked)


def _job(run: Run, task: str, settings: str, progress: Progress[launch.JobState]) -> str:
    """One job on a run whose lock we hold, and what came of it; what it imports comes after its turn."""
    if task == "evaluate":
        outcome = f"evaluated: test MAP@R {_evaluate(run)}"
    elif task == "weigh":
        from dmlcore.inspection.local import weight_maps

        outcome = f"weighed: {weight_maps.write(run).name}"
    elif task == "snapshots":
        from dmlcore.inspection import snapshots

        outcome = f"embedded {snapshots.embed_all(run, progress.say)} snapshots"
    elif task == "true-step":
        from dmlcore.inspection.failure import true_step

        outcome = f"stepped: {true_step.make(run, true_step.Question.from_json(settings), progress.say).name}"
    elif task == "influence":
        from dmlcore.inspection.influence import failure

        outcome = f"traced: {failure.make(run, failure.FailureQuestion.from_json(settings), progress.say).name}"
    else:
        chosen = Settings.from_json(settings) if settings else None
        outcome = experiments.make_map(run, chosen, task != "project", progress)
    log.info("%s", outcome)
    return outcome


@app.command()
def recover(runs: Runs = None) -> None:
    """Resume what was running or queued when the machine went down: runs, studies, protocols, jobs; each once."""
    from dmlcore.experiments import recovery

    resumed = recovery.recover(store_at(runs), report=lambda text: print(text, flush=True))
    print(f"{len(resumed)} resumed" if resumed else "nothing was interrupted")


@app.command("example")
def pack_example(
    run: Annotated[str | None, typer.Argument(help="A finished run [default: train the spec glyphs]")] = None,
    runs: Runs = None,
) -> None:
    """Make the run that ships with the lab anew: train it, make all its maps, pack it beside the specs."""
    from dmlcore.experiments import example

    store = store_at(runs)
    chosen = store.open(run) if run else store.create(read_spec(example.SPEC))
    if not run:
        _log_to(chosen)
        _finish(_train(chosen))
    with chosen.lock():
        example.complete(chosen)
    path = example.pack(chosen)
    print(f"{path}: {path.stat().st_size:,} bytes")


@app.command("list")
def list_runs(runs: Runs = None) -> None:
    """List the runs, newest first."""
    store = store_at(runs)
    for run in store.list():
        state = run.state()
        name = f"  {run.spec.name}" if run.spec.name else ""
        print(f"{run.id:44} {run.status():10} {state.step:>7}/{state.steps:<7} {state.message}{name}")
    for run_id, reason in store.unreadable():
        print(f"{run_id:44} unreadable: {reason}")


@app.command()
def unpack(
    archive: Annotated[Path, typer.Argument(help="Archive of a data set")],
    into: Annotated[Path, typer.Argument(help="Folder that receives it")],
) -> None:
    """Unpack an archive of a data set safely: no links, no paths outside, no bombs."""
    from dmlcore.data.files import archives

    print(archives.unpack(archive, into))


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="Script in benchmarks/ [default: list them]")] = "",
) -> None:
    """List the scripts in benchmarks/, or run one."""
    scripts = {path.stem: path for path in sorted(BENCHMARKS.glob("*.py")) if path.stem != "harness"}
    if not name:
        for stem, path in scripts.items():
            print(f"{stem:24} {path.read_text().lstrip().splitlines()[0].strip(chr(34))}")
    elif name in scripts:
        sys.argv = [str(scripts[name])]
        sys.path.insert(0, str(HOME))  # they share a harness, and that of the tests
        runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    else:
        raise CommandError(f"no benchmark {name!r}; there are {', '.join(scripts) or 'none'}")


def _train(run: Run, *, resume: bool = False, wait: bool = False) -> RunState:
    """Take the run, wait for its turn if asked to, and train it.

    Torch comes after the lock, so that the run shows as alive at once, and after the turn, which may choose the GPU.
    """
    with run.lock():
        if resume:
            launch.prepare_resume(run)
        if run.state().state != "queued":
            return run.state()  # cancelled before it began
        if run.cancel_requested():
            return run.update(state="cancelled", message="cancelled before it began")
        stop = stop_on_signal()
        with device_queue.turn(run, wait=wait, given_up=lambda: stop() or run.cancel_requested()) as begins:
            if not begins:
                return run.update(state="cancelled", message="cancelled before it began")
            run.begin()
            from dmlcore.training.loop import train

            return train(run, stop=stop, before_done=_keep_neighbours)


def _evaluate(run: Run) -> str:
    from dmlcore.training.loop import evaluate

    value = evaluate(run)
    _keep_neighbours(run)
    return "none" if value is None else f"{100 * value:.2f} %"


def _keep_neighbours(run: Run) -> None:
    """So that the first page that shows them need not search: of 60,000 embeddings that takes half a minute."""
    from dmlcore.inspection import neighbours as learned
    from dmlcore.storage import arrays

    source = run.embeddings()
    if source is not None:
        try:
            learned.keep(source)
        except (arrays.Unreadable, OSError, MemoryError) as error:  # a single sample, say: the page will tell
            log.warning("%s", error)


def _finish(state: RunState) -> None:
    """Exit 0 when done, 1 when failed, 130 when stopped."""
    if state.state == "failed":
        raise typer.Exit(1)  # the reason is in the log, which is also on the screen
    if state.state != "done":
        raise typer.Exit(130)


class _OneLine(logging.Formatter):
    """The message alone: tracebacks belong in the log file."""

    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage()


def _log_to(run: Run | None) -> None:
    """Log to log.txt of the run and, in short, to the screen; without a run in full to the output, which is log.txt."""
    full = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    screen = logging.StreamHandler()
    screen.setFormatter(_OneLine() if run else full)
    log.addHandler(screen)
    if run:
        file = logging.FileHandler(run.path / LOG)
        file.setFormatter(full)
        log.addHandler(file)
    log.setLevel(logging.INFO)


def main() -> None:
    """Run the command line; an error is one readable message, never a traceback."""
    try:
        app(prog_name="dml" if Path(sys.argv[0]).name == "dml" else "python -m dmlcore")
    except locks.Busy as busy:
        sys.exit(_complain(str(busy), EX_TEMPFAIL))
    except CommandError as failure:
        sys.exit(_complain(str(failure), failure.code))
    except ModuleNotFoundError as missing:
        extra = "pip install 'dml-lab[cluster]'"
        sys.exit(_complain(f"this needs {missing.name}, which the library alone does not bring: {extra}", 1))
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(_complain(str(error), 1))
    except Exception as error:
        log.debug("unexpected error", exc_info=True)
        sys.exit(_complain(f"unexpected {type(error).__name__}: {error}", 1))


def _complain(message: str, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code
