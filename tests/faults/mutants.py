"""Is every defence guarded by a test? Take each away in a copy of the tree and see which test dies.

    python -m tests.faults.mutants [--only WORDS] [--area AREA] [-n WORKERS]

Reads tests/faults/mutants/AREA.toml. An entry says what is taken away (`name`, `file`, `find`, `replace`) and names the
quick tests of which at least one must fail (`tests`). `find` occurs exactly once in the file. An entry that rightly
survives says why (`survives`). Exits with 1 if a mutant survives unexplained, or if its tests fail, or do not run,
without it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).with_suffix("")
LIMIT = 180.0  # seconds for the tests of one mutant; one that hangs them is noticed too
MARK = "DML_MUTANT"  # in the environment of everything that a mutant starts, so that nothing of it stays
OUTCOME = re.compile(r"(PASSED|FAILED|ERROR) (\S+?\.py(?:::.+?)?)(?: - (.*))?")


@dataclass(frozen=True)
class Mutant:
    """One defence taken away, and the tests that should notice."""

    area: str
    name: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]
    survives: str = ""  # why no test can or need notice

    def applied(self, root: Path) -> str:
        """The text of the file without the defence; raises ValueError where the entry does not fit the sources."""
        path = root / self.file
        if not path.is_file():
            raise ValueError(f"{self.file} is not there")
        text = path.read_text()
        if (times := text.count(self.find)) != 1:
            raise ValueError(f"`find` occurs {times} times in {self.file}")
        if self.find == self.replace:
            raise ValueError("`replace` changes nothing")
        mutated = text.replace(self.find, self.replace)
        if path.suffix == ".py":
            compile(mutated, self.file, "exec")
        return mutated


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant: killed, survived, explained (survived, and says why) or error."""

    mutant: Mutant
    word: str
    by: str
    seconds: float


def read(lists: Path = LISTS) -> list[Mutant]:
    """All entries of AREA.toml in a folder; raises TypeError for one that lacks a key or has another."""
    return [
        Mutant(area=path.stem, **entry | {"tests": tuple(entry["tests"])})
        for path in sorted(lists.glob("*.toml"))
        for entry in tomllib.loads(path.read_text())["mutant"]
    ]


def copy_tree(root: Path, into: Path) -> Path:
    """Copy what git tracks, or would, to a new folder, where mutants may write."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, into / name)
    return into


def judge(mutant: Mutant, tree: Path) -> Verdict:
    """Apply one mutant to a copy of the tree, run its tests, and restore the copy."""
    began = time.monotonic()
    path = tree / mutant.file
    original = path.read_bytes()
    try:
        path.write_text(mutant.applied(tree))
        _forget_compiled(path)
        code, outcomes, output = run_tests(tree, list(mutant.tests), mark=f"{os.getpid()}-{id(mutant)}")
    except (ValueError, SyntaxError) as error:
        return Verdict(mutant, "error", str(error), 0.0)
    finally:
        path.write_bytes(original)
        _forget_compiled(path)
    failed = [f"{test}: {why}" for word, test, why in outcomes if word != "PASSED"]
    if code == 1 and failed:
        word, by = "killed", failed[0]
    elif code is None:
        word, by = "killed", f"the tests hung for {LIMIT:.0f} s"
    elif code == 0 and any(word == "PASSED" for word, _, _ in outcomes):
        word, by = ("explained", mutant.survives) if mutant.survives else ("survived", ", ".join(mutant.tests))
    elif code == 0:
        word, by = "error", "its tests were skipped, so nobody looked"
    else:  # the tests could not even be collected: that shows nothing about the defence
        word, by = "error", f"pytest ended with {code}: {output.strip().splitlines()[-1:]}"
    return Verdict(mutant, word, by, time.monotonic() - began)


def run_tests(
    tree: Path, tests: list[str], *, mark: str, more: tuple[str, ...] = ("-x",), limit: float = LIMIT
) -> tuple[int | None, list[tuple[str, str, str]], str]:
    """Run tests in a tree: exit code of pytest (None: over the limit), (word, test, why) of each, the output."""
    command = [sys.executable, "-m", "pytest", "-q", "-rfEp", "--tb=short", "-p", "no:cacheprovider", *more, *tests]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "300", MARK: mark}
    with subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            code, output = None, ""
        finally:
            _end_all(mark)
    summary = output.rpartition("short test summary info")[2]
    matches = (OUTCOME.fullmatch(line.strip()) for line in summary.splitlines())
    return code, [(m[1], m[2], m[3] or "") for m in matches if m], output


def _end_all(mark: str) -> None:
    """Kill everything that bears the mark: a mutant without its defence may leave processes that nobody ends."""
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)


def _forget_compiled(path: Path) -> None:
    """Python trusts a compiled file by second and size, which a mutant may share with the original."""
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()


def sound(mutants: list[Mutant], tree: Path, workers: int) -> dict[str, str]:
    """Run all named tests without any mutant; return why by test for those that fail."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    more = ("-n", str(workers), "--dist", "loadfile") if workers > 1 else ()
    code, outcomes, output = run_tests(tree, tests, mark=f"{os.getpid()}-sound", more=more, limit=3600.0)
    failed = {test: why for word, test, why in outcomes if word != "PASSED"}
    if code != 0 and not failed:
        sys.exit(f"the tests do not run without a mutant (pytest ended with {code}):\n{output[-3000:]}")
    return failed


def main(arguments: list[str] | None = None, *, root: Path = ROOT, lists: Path = LISTS) -> int:
    """Judge the mutants that the arguments ask for and print a table; 0 if each is killed or explained."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="words that the name of the mutant contains")
    parser.add_argument("--area", help="one list: the name of its file without .toml")
    parser.add_argument("-n", dest="workers", type=int, default=1, help="mutants tried at once")
    asked = parser.parse_args(arguments)
    mutants = [
        m for m in read(lists) if asked.only.lower() in m.name.lower() and (asked.area is None or m.area == asked.area)
    ]
    if not mutants:
        sys.exit("no mutant is called so")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [
            copy_tree(root, Path(folder) / str(number)) for number in range(max(1, min(asked.workers, len(mutants))))
        ]
        failing = sound(mutants, trees[0], len(trees))
        for test, why in failing.items():
            print(f"fails without any mutant: {test}: {why}")
        verdicts = _judge_all(mutants, trees)
    _print_table(verdicts, time.monotonic() - began)
    return 1 if failing or any(verdict.word in ("survived", "error") for verdict in verdicts) else 0


def _judge_all(mutants: list[Mutant], trees: list[Path]) -> list[Verdict]:
    free: queue.Queue[Path] = queue.Queue()
    for tree in trees:
        free.put(tree)

    def one(mutant: Mutant) -> Verdict:
        tree = free.get()
        try:
            verdict = judge(mutant, tree)
        finally:
            free.put(tree)
        print(f"{verdict.word:9} {verdict.seconds:5.1f} s  {mutant.area}: {mutant.name}", flush=True)
        return verdict

    with ThreadPoolExecutor(len(trees)) as workers:
        return list(workers.map(one, mutants))


def _print_table(verdicts: list[Verdict], seconds: float) -> None:
    print("\n| list | taken away | verdict | by |\n|---|---|---|---|")
    for verdict in verdicts:
        by = verdict.by.replace("|", "\\|").replace("\n", " ")[:200]
        print(f"| {verdict.mutant.area} | {verdict.mutant.name} | {verdict.word} | {by} |")
    words = [verdict.word for verdict in verdicts]
    told = ", ".join(f"{words.count(word)} {word}" for word in ("killed", "survived", "explained", "error"))
    print(f"\n{len(verdicts)} mutants: {told}; {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
