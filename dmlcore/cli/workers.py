"""Hidden command `work`, which `jobs.launch` starts to train a run or execute a job, and functions it shares."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager

import typer

from dmlcore.cli import attended, experiments, together
from dmlcore.cli.options import Backend, Runs, open_store, stop_on_signal
from dmlcore.inspection.maps.settings import Settings
from dmlcore.jobs import device_queue, launch
from dmlcore.monitoring import logs
from dmlcore.significance.transductive import mark_transductive
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
    """Execute one task on one run; started by dmlcore.jobs.launch, which redirects the output to the log of the run."""
    log_to(None)
    store = open_store(runs)
    opened = store.open(run)
    if task == "train":
        finish(
            attended.train_on_backend(backend, opened, processes)
            if backend
            else train(opened, wait=True, processes=processes)
        )
        return
    asked = launch.JobState.model_validate({"task": task, "more": ("--settings", settings) if settings else ()})
    if backend:
        attended.run_job_on_backend(backend, opened, asked.task, settings)
        return

    def in_turn(progress: Progress[launch.JobState]) -> launch.JobState:
        def say_who_is_before() -> bool:
            place = device_queue.waiting_runs(store, job=True).get(run)
            ahead = place.ahead + 1 if place else 1
            progress.report(f"waiting for {ahead} other job{'s' if ahead > 1 else ''}")
            return False

        with device_queue.acquire_slot(opened, wait=True, given_up=say_who_is_before, job=True):
            progress.report("working")
            return progress.finished(run_job(opened, task, settings, progress))

    launch.Job(opened).execute(in_turn, asked)


def run_job(run: Run, task: str, settings: str, progress: Progress[launch.JobState]) -> str:
    """Execute a job on a run and return a summary; the caller must hold the lock of the run.

    Each job's modules are imported only when it starts, so that a worker waiting in the queue does not hold them in
    memory.
    """
    if task == "evaluate":
        outcome = f"evaluated: {evaluate(run)}"
    elif task == "weigh":
        from dmlcore.inspection.local import weight_maps

        outcome = f"wrote the weight maps {weight_maps.write(run).name}"
    elif task == "snapshots":
        from dmlcore.inspection import snapshots

        outcome = f"embedded {snapshots.embed_all(run, progress.report)} snapshots"
    elif task == "true-step":
        from dmlcore.inspection.failure import answers, true_step

        path = true_step.make(run, answers.Question.from_json(settings), progress.report)
        outcome = f"wrote the step {path.name}"
    elif task == "influence":
        from dmlcore.inspection.failure import answers
        from dmlcore.inspection.influence import failure

        path = failure.make(run, answers.Question.from_json(settings), progress.report)
        outcome = f"wrote the influence {path.name}"
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
    """Lock the run, wait for a device if `wait` is set, train the run, and return its final state.

    torch is imported late for two reasons: the import takes seconds, during which the run should already be displayed
    as running, and waiting for a device may select the GPU, which must precede the import.
    """
    with run.lock():
        if resume:
            launch.prepare_resume(run)
        if run.state().state != "queued":
            return run.state()  # the run was cancelled before its worker started
        if run.cancel_requested():
            return run.update(state="cancelled", message="cancelled before it started")
        number = together.count_processes(processes, run.state().processes, device_queue.max_processes(run.spec))
        run.update(processes=number)
        stop = stop_on_signal()
        with device_queue.acquire_slot(run, wait=wait, given_up=lambda: stop() or run.cancel_requested()) as begins:
            if not begins:
                return run.update(state="cancelled", message="cancelled before it started")
            run.mark_running()
            from dmlcore.training import loop

            return loop.train(run, stop=stop, before_done=keep_neighbours, company=together.start_company(number))


def train_now(run: Run, company: AbstractContextManager[None] | None) -> RunState:
    """Train a queued run on a node without waiting for a free device, and return its final state.

    Args:
        run: The run.
        company: Context from `together.start_company` for several processes, or None.
    """
    from dmlcore.training import loop

    with run.lock():
        if run.state().state != "queued":
            return run.state()  # the run was cancelled before it started
        return loop.train(run, before_done=keep_neighbours, company=company)


def evaluate(run: Run) -> str:
    """Score the test split with a run's best weights; return the score as text. The caller must hold the run's lock."""
    from dmlcore.training import loop

    value = loop.evaluate(run)
    keep_neighbours(run)
    words = mark_transductive("test MAP@R", run.scores().get("trained", {}).get("transductive"))
    return f"{words} {'none' if value is None else f'{100 * value:.2f} %'}"


def keep_neighbours(run: Run) -> None:
    """Compute and store the nearest neighbours of all queries, since pages would be slow (30 s for 60,000 queries)."""
    from dmlcore.inspection import neighbours as learned
    from dmlcore.storage import arrays

    source = run.embeddings()
    if source is not None:
        try:
            learned.keep(source)
        # The search fails, for example, if there is only one sample. Continue, since the page displays the error.
        except (arrays.Unreadable, OSError, MemoryError) as error:
            log.warning("%s", error)


def finish(state: RunState) -> None:
    """Exit with status 0 if the run is done, 1 if it failed and 130 if it was stopped."""
    if state.state == "failed":
        raise typer.Exit(1)  # the reason was logged, both to the log file and to the terminal
    if state.state != "done":
        raise typer.Exit(130)


class _MessageFormatter(logging.Formatter):
    """Formatter that returns only the message of a record; tracebacks are written to the log file."""

    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage()


def log_to(run: Run | None) -> None:
    """Log full records to the run's log.txt, and only their messages to the terminal.

    If `run` is None, log full records to stderr, which the process that started this one has redirected to a log.txt.
    """
    full = logging.Formatter(logs.PLAIN)
    screen = logging.StreamHandler()
    screen.setFormatter((logs.JsonLine(run=run.id) if logs.is_json_enabled() else _MessageFormatter()) if run else full)
    log.addHandler(screen)
    if run:
        file = logging.FileHandler(run.path / LOG)
        file.setFormatter(full)
        log.addHandler(file)
    log.setLevel(logging.INFO)
