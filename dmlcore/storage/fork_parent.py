"""Starting point of a fork: the parent's checkpoint, linked or copied when the fork is created.

A fork is a run whose spec names a parent run and a step (section `fork`). Until its own first checkpoint, its directory
holds origin.ckpt, a link to or copy of the parent's checkpoint, and origin.json, the rows of the parent's metrics that
are valid for the fork as well. After that, the fork needs neither these files nor its parent. This module does not
import torch.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

from dmlcore.spec import SpecError
from dmlcore.spec.sections import ForkSpec
from dmlcore.storage import atomic_files, metrics_rows, run_directory
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.run_directory import LAST, ORIGIN_ROWS, PREV, step_of


def steps(folder: Path) -> dict[int, Path]:
    """Return the checkpoints from which a run can be forked, by step: kept ones and the last two generations."""
    paths: dict[int, Path] = {}
    for path in (folder / PREV, folder / LAST, *run_directory.kept_checkpoints(folder).values()):
        if (step := step_of(path)) is not None:
            paths[step] = path
    return dict(sorted(paths.items()))


def copy_checkpoint(building: Path, store: Path, fork: ForkSpec) -> None:
    """Add the parent's checkpoint and inherited metric rows to the directory of a run that is being created.

    Args:
        building: Directory of the new run.
        store: Directory of all runs.
        fork: Parent run and step.

    Raises:
        SpecError: There is no such run, or it has no checkpoint at that step; the message lists the steps available.
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
        except OSError:  # the file system does not support hard links
            with open(path, "rb") as source:
                atomic_files.replace(origin, partial(shutil.copyfileobj, source))
        # Read the step from the new link, since the parent may replace its last checkpoint at any time.
        if step_of(origin) == fork.step:
            atomic_files.replace_json(
                building / ORIGIN_ROWS, _inherited_rows(parent / run_directory.METRICS, fork.step)
            )
            return
    there = ", ".join(map(str, steps(parent))) or "none"
    raise SpecError(
        f"fork.step: {fork.run} has no checkpoint of step {fork.step}; available steps: {there}. "
        "Set schedule.keep_every to keep more"
    )


def read_rows(folder: Path) -> list[Row]:
    """Return the rows that `copy_checkpoint` stored in a run directory; raises SpecError if they cannot be read."""
    try:
        return [
            row for each in atomic_files.read_json(folder / ORIGIN_ROWS) if (row := metrics_rows.validate_row(each))
        ]
    except (OSError, ValueError, TypeError) as error:
        raise SpecError(f"fork.run: {ORIGIN_ROWS} cannot be read: {error}. Make the fork again") from None


def _inherited_rows(metrics: Path, step: int) -> list[Row]:
    """Return the parent's baseline scores, and its validation rows at `step`; both are valid for the fork as well."""
    rows = []
    try:
        lines = atomic_files.read_bytes(metrics, metrics_rows.MAX_FILE_BYTES).splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        if not (row := metrics_rows.from_line(line)):
            continue
        before = row["kind"] == "scores" and row["of"] in metrics_rows.UNTRAINED
        if before or (row["kind"].startswith("validation") and row["step"] == step):
            rows.append(row)
    return rows
