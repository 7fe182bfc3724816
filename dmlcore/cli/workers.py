"""What trains, evaluates and does jobs on one run: the command that `jobs.launch` starts, and what others share."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager

import typer

from dmlcore.cli import attended, experiments, together
from dmlcore.cli.options import Backend, Runs, stop_on_signal, store_at
from dmlcore.inspection.maps.settings import Settings
from dmlcore.jobs import device_queue, launch
from dmlcore.monitoring import logs
from dmlcore.significance.transductive import marked
from dmlcore.storage.run_directory import LOG
from dmlcore.storage.runs import Run, RunState
from dmlcore.storage.task import Progress

log = logging.getLogger("dmlcore")


def work(
    task: str,
    run: str,
    runs: Runs = None,
    settings: str = "",
    backend: Backend = "",
    processes: together.Processes = None,
) -> None:
    """What dmlcore.jobs.launch starts: one task on one run; its output is the log of the run."""
    log_to(None)
    store = store_at(runs)
    opened = store.open(run)
    if task == "train":
        finish(
            attended.train_at(backend, opened, processes) if backend else train(opened, wait=True, processes=processes)
        )
        return
    asked = launch.JobState.model_validate(
        {"task": task, "more": ("--settings", settings) if settings else (), "backend": backend}
    )
    if backend:
        launch.Job(opened).execute(lambda progress: attended.do_at(backend, opened, task, settings, progress), asked)
        return

    def in_turn(progress: Progress[launch.JobState]) -> launch.JobState:
        def say_who_is_before() -> bool:
            place = device_queue.waiting(store, job=True).get(run)
            ahead = place.ahead + 1 if place else 1
            progress.report(f"waiting, {ahead} job{'s' if ahead > 1 else ''} before it")
            return False

        with device_queue.turn(opened, wait=True, given_up=say_who_is_before, job=True):
            progress.report("working")
            return progress.finished(do(opened, task, settings, progress))

    launch.Job(opened).execute(in_turn, asked)


def do(run: Run, task: str, settings: str, progress: Progress[launch.JobState]) -> str:
    """One job on a run whose lock we hold, and what came of it; what it imports comes after its turn."""
    if task == "evaluate":
        outcome = f"evaluated: {evaluate(run)}"
    elif task == "weigh":
        from dmlcore.inspection.local import weight_maps

        outcome = f"weighed: {weight_maps.write(run).name}"
    elif task == "snapshots":
        from dmlcore.inspection import snapshots

        outcome = f"embedded {snapshots.embed_all(run, progress.report)} snapshots"
    elif task == "true-step":
        from dmlcore.inspection.failure import true_step

        outcome = f"stepped: {true_step.make(run, true_step.Question.from_json(settings), progress.report).name}"
    elif task == "influence":
        from dmlcore.inspection.influence import failure

        outcome = f"traced: {failure.make(run, failure.FailureQuestion.from_json(settings), progress.report).name}"
    elif task == "search-all":
        from dmlcore.inspection import whole_search

        known = whole_search.make(run, whole_search.WholeSearch.from_json(settings), progress.report)
        outcome = f"searched all queries: {'exactly' if known is None else known.words}"
    else:
        chosen = Settings.from_json(settings) if settings else None
        outcome = experiments.make_map(run, chosen, task != "project", progress)
    log.info("%s", outcome)
    return outcome


def train(run: Run, *, resume: bool = False, wait: bool = False, processes: int | None = None) -> RunState:
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
        number = together.count(processes, run.state().processes, device_queue.most_processes(run.spec))
        run.update(processes=number)
        stop = stop_on_signal()
        with device_queue.turn(run, wait=wait, given_up=lambda: stop() or run.cancel_requested()) as begins:
            if not begins:
                return run.update(state="cancelled", message="cancelled before it began")
            run.begin()
            from dmlcore.training import loop

            return loop.train(run, stop=stop, before_done=keep_neighbours, company=together.company(number))


def train_now(run: Run, company: AbstractContextManager[None] | None) -> RunState:
    """Train a queued run at once, in company of other processes if there are any; its file alone asks it to end."""
    from dmlcore.training import loop

    with run.lock():
        if run.cancel_requested():
            return run.update(state="cancelled", message="cancelled before it began")
        run.begin()
        return loop.train(run, before_done=keep_neighbours, company=company)


def evaluate(run: Run) -> str:
    """Test the best weights of a run whose lock we hold; what it reached, in words."""
    from dmlcore.training import loop

    value = loop.evaluate(run)
    keep_neighbours(run)
    words = marked("test MAP@R", run.scores().get("trained", {}).get("transductive"))
    return f"{words} {'none' if value is None else f'{100 * value:.2f} %'}"


def keep_neighbours(run: Run) -> None:
    """So that the first page that shows them need not search: of 60,000 embeddings that takes half a minute."""
    from dmlcore.inspection import neighbours as learned
    from dmlcore.storage import arrays

    source = run.embeddings()
    if source is not None:
        try:
            learned.keep(source)
        except (arrays.Unreadable, OSError, MemoryError) as error:  # a single sample, say: the page will tell
            log.warning("%s", error)


def finish(state: RunState) -> None:
    """Exit 0 when done, 1 when failed, 130 when stopped."""
    if state.state == "failed":
        raise typer.Exit(1)  # the reason is in the log, which is also on the screen
    if state.state != "done":
        raise typer.Exit(130)


class _OneLine(logging.Formatter):
    """The message alone: tracebacks belong in the log file."""

    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage()


def log_to(run: Run | None) -> None:
    """Log to log.txt of the run and, in short, to the screen; without a run in full to the output, which is log.txt."""
    full = logging.Formatter(logs.PLAIN)
    screen = logging.StreamHandler()
    screen.setFormatter((logs.JsonLine(run=run.id) if logs.wanted() else _OneLine()) if run else full)
    log.addHandler(screen)
    if run:
        file = logging.FileHandler(run.path / LOG)
        file.setFormatter(full)
        log.addHandler(file)
    log.setLevel(logging.INFO)
