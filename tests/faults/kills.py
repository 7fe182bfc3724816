"""Fault injection: work that is killed with SIGKILL at random points and resumed must end with the expected bytes.

For each training variant of tests/faults/test_training_faults.py (memory, proxies, schedules, plateau, warm-up, mined
batches, bfloat16), one run is left undisturbed, and --trials runs are killed twice each: after a random step, and at a
random system call while saving. Checkpoint (weights, optimiser, progress), metrics and embeddings are compared. Then
evaluations, maps, and the creation and deletion of runs are killed before each file-system call in the store in turn,
and repeated; every file of the run is compared. Finally leftovers are removed from the store. The script prints how
many trials ended with equal files, and exits with 1 if one did not or if anything was left over. --trials 46 means
about 1,000 kills.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.harness import command_line
from dmlcore.inspection.maps.settings import Settings
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunError, RunStore
from tests.faults import test_training_faults as faults
from tests.faults.crash import remains
from tests.faults.killed_processes import KILLED, train

# files that record the history of a run and therefore differ between equal runs
HISTORY = {"log.txt", "state.json", "lock"}
MAP = Settings("tsne", iterations=100).to_json()


@dataclass
class Kills:
    """Fault injection in one store; counts kills, kills while saving, and trials with wrong files."""

    store: RunStore
    choose: random.Random
    numbers: Iterator[int] = field(default_factory=itertools.count)
    killed: int = 0
    inside: int = 0  # number of kills at a file-system call while saving
    wrong: int = 0

    def count(self, kind: str, ends: Iterator[tuple[int, int, bool]], trials: int) -> None:
        """Run `trials` trials of one kind, and add their counts to the totals and print them.

        `ends` yields for each trial the number of kills, the number of kills while saving, and True if the final files
        are equal.
        """
        killed, inside, same = (sum(column) for column in zip(*itertools.islice(ends, trials), strict=True))
        self.killed, self.inside, self.wrong = self.killed + killed, self.inside + inside, self.wrong + trials - same
        print(f"{kind:46} {killed:4} kills, {inside:3} while saving; {same} of {trials} ended equal", flush=True)

    def training_runs(self, spec: RunSpec) -> Iterator[tuple[int, int, bool]]:
        """Yield one result per training run that is killed after a random step and at a random call while saving."""
        whole = self.store.create(spec)
        if train(whole) or whole.status() != "done":
            sys.exit(whole.state().message)
        expected = faults.outcome(whole)
        while True:
            run = self.store.create(spec)
            step = self.choose.randrange(1, spec.schedule.steps)
            saves = 1 + (spec.schedule.steps - step) // spec.schedule.checkpoint_every
            killed = []
            for fate in {"die_at_step": step}, {"die_at_event": self.choose.randrange(faults.EVENTS_PER_SAVE * saves)}:
                killed.append(train(run, **fate) == KILLED)
                if run.status() == "done":
                    break
                faults.put_back(run)
            if run.status() != "done":
                train(run)
            yield sum(killed), sum(killed[1:]), run.status() == "done" and faults.outcome(run) == expected
            run.delete()

    def jobs(self, task: str, before: Run, settings: str = "") -> Iterator[tuple[int, int, bool]]:
        """Yield one result per job on a copy of the run `before`.

        Each job is killed one file-system call later than the previous one, and repeated; then the files of the run are
        compared.
        """
        whole = self._copy(before)
        if train(whole, task=task, settings=settings):
            sys.exit(f"{task}: the job failed")
        expected = files(whole)
        if expected == files(before):
            sys.exit(f"{task}: nothing was written")
        number = 0
        while True:
            run = self._copy(before)
            killed = train(run, task=task, settings=settings, die_at_call=number) == KILLED
            number = number + 1 if killed else 0
            if killed:
                train(run, task=task, settings=settings)
            yield killed, killed, files(run) == expected
            run.delete()

    def creations(self, like: Run) -> Iterator[tuple[int, int, bool]]:
        """Yield one result per killed creation of a run.

        Each creation is killed one file-system call later than the previous one. Afterwards the run must be complete or
        absent, and no unreadable leftovers may exist.
        """
        files_of_new = files(self.store.create(like.spec))
        number = 0
        while True:
            known = {run.id for run in self.store.list()}
            killed = train(like, task="create", die_at_call=number) == KILLED
            number = number + 1 if killed else 0
            made = [run for run in self.store.list() if run.id not in known]
            yield killed, killed, all(files(run) == files_of_new for run in made) and not list(self.store.unreadable())
            for run in made:
                run.delete()

    def deletions(self, like: Run) -> Iterator[tuple[int, int, bool]]:
        """Yield one result per killed deletion of a run.

        Each deletion is killed one file-system call later than the previous one. Afterwards the run must be absent or
        intact; an intact run is then deleted again.
        """
        expected = files(like)
        number = 0
        while True:
            run = self._copy(like)
            killed = train(run, task="delete", die_at_call=number) == KILLED
            number = number + 1 if killed else 0
            try:
                there = self.store.open(run.id)
            except RunError:
                yield killed, killed, run.id not in {known.id for known in self.store.list()}
                continue
            yield killed, killed, killed and files(there) == expected
            there.delete()

    def _copy(self, run: Run) -> Run:
        name = f"{run.id}-{next(self.numbers)}"
        return self.store.put(name, lambda building: shutil.copytree(run.path, building, dirs_exist_ok=True))


def files(run: Run) -> dict[str, str]:
    """Return the SHA-256 of every file of a run, except the files in HISTORY."""
    paths = (path for path in run.path.rglob("*") if path.is_file() and path.name not in HISTORY)
    return {str(path.relative_to(run.path)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument(
        "--trials", type=int, default=25, help="trials of each kind of training; twice as many of the other kinds"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(folder)
        kills, trials = Kills(store, random.Random(arguments.seed)), arguments.trials
        for kind, overrides in {"plain": [], **faults.STRENGTHS}.items():
            spec = faults.SPEC.with_overrides([*faults.SHORT, *overrides])
            kills.count(f"training: {kind}", kills.training_runs(spec), trials)
        cut, whole = (store.create(faults.SPEC) for _ in range(2))
        train(cut, die_at_step=25)
        train(whole)
        kills.count("evaluation", kills.jobs("evaluate", cut), 2 * trials)
        kills.count("map", kills.jobs("project", whole, MAP), 2 * trials)
        kills.count("creation", kills.creations(whole), 2 * trials)
        kills.count("deletion", kills.deletions(whole), 2 * trials)
        left = remains(store)
    print(f"{kills.killed} kills, {kills.inside} while saving; {kills.wrong} ended differently; left over: {len(left)}")
    sys.exit(bool(kills.wrong or left))


if __name__ == "__main__":
    main()
