"""Where a fork begins: the checkpoint of another run, taken into its own directory when it is made; without torch.

A fork is a run whose spec names a run and a step (section `fork`). Until it has written its first own checkpoint its
directory holds origin.ckpt, the parent's checkpoint under a second name, and origin.json, rows of the parent's metrics
that are true of the fork too. From then on it needs neither them nor the parent.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import IO

from dmlcore.spec import SpecError
from dmlcore.spec.sections import ForkSpec
from dmlcore.storage import atomic_files, metrics_rows, run_directory
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.run_directory import LAST, ORIGIN_ROWS, PREV, step_of


def steps(folder: Path) -> dict[int, Path]:
    """Checkpoints of a run directory from which it can be forked, by step: the kept ones and the last ones."""
    paths: dict[int, Path] = {}
    for path in (folder / PREV, folder / LAST, *run_directory.kept(folder).values()):
        if (step := step_of(path)) is not None:
            paths[step] = path
    return dict(sorted(paths.items()))


def take(building: Path, store: Path, fork: ForkSpec) -> None:
    """Put checkpoint and rows of the forked run into the directory of a run that is being made.

    store: the folder of all runs. Raises SpecError naming the run, or the steps of which there are checkpoints.
    """
    parent = store / fork.run
    if parent.is_symlink() or not (parent / run_directory.SPEC).is_file():
        raise SpecError(f"fork.run: there is no run {fork.run!r} in {store}")
    origin = building / run_directory.ORIGIN
    for path in (run_directory.kept_path(parent, fork.step), parent / LAST, parent / PREV):
        if not path.is_file():
            continue
        origin.unlink(missing_ok=True)
        try:
            os.link(path, origin)
        except OSError:  # no hard links here
            contents = path.read_bytes()
            atomic_files.replace(origin, partial(_write, contents))
        if step_of(origin) == fork.step:  # asked of our own name, since a run may replace its last one any time
            atomic_files.replace_json(building / ORIGIN_ROWS, _rows(parent / run_directory.METRICS, fork.step))
            return
    there = ", ".join(map(str, steps(parent))) or "none"
    raise SpecError(
        f"fork.step: {fork.run} has no checkpoint of step {fork.step}; there are: {there}. "
        "Runs with schedule.keep_every keep more"
    )


def _write(contents: bytes, file: IO[bytes]) -> None:
    file.write(contents)


def rows_of(folder: Path) -> list[Row]:
    """The rows that `take` has put into a run directory; raises SpecError if they cannot be read."""
    try:
        return [row for each in atomic_files.read_json(folder / ORIGIN_ROWS) if (row := metrics_rows.checked(each))]
    except (OSError, ValueError, TypeError) as error:
        raise SpecError(f"fork.run: {ORIGIN_ROWS} cannot be read: {error}. Make the fork again") from None


def _rows(metrics: Path, step: int) -> list[Row]:
    """What the parent measured before its first step, and at this one, of things that a fork does not change."""
    rows = []
    try:
        lines = atomic_files.contents(metrics, metrics_rows.LONGEST_FILE).splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        if not (row := metrics_rows.from_line(line)):
            continue
        before = row["kind"] == "scores" and row["of"] in ("inputs", "untrained")
        if before or (row["kind"].startswith("validation") and row["step"] == step):
            rows.append(row)
    return rows
