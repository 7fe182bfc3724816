"""Check of a whole data set for samples that cannot be decoded and identical samples in several classes or splits."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from dmlcore.data import report
from dmlcore.data.dataset import DataError, Dataset, Samples
from dmlcore.data.files import images, locate
from dmlcore.data.report import Report
from dmlcore.data.shards.index import ShardImages
from dmlcore.storage import atomic_files
from dmlcore.storage.task import Progress, ProgressState, Task

LISTED = 1000  # maximum number of unreadable samples, and of groups of identical samples, that a result lists
CHUNK = 256  # number of samples between two progress reports
SHORT = 72  # shorter side in pixels to which images are decoded; training on images of 64 px uses the same


@dataclass(frozen=True)
class DataCheck:
    """Result of reading every sample of a data set.

    Attributes:
        samples: Number of samples.
        failures: Number of samples that cannot be read.
        unreadable: Pairs (key of the sample, reason) for the first LISTED failures.
        groups: Number of groups of identical samples.
        copies: Sample indices in each of the first LISTED groups; groups that span the most classes come first.
        seconds: Duration of the check in seconds.
        stamp: Digest of the files at the time of the check, as returned by `stamp_of`.
    """

    samples: int
    failures: int
    unreadable: tuple[tuple[str, str], ...]
    groups: int
    copies: tuple[tuple[int, ...], ...]
    seconds: float
    stamp: str


def task_of(name: str, root: Path | str | None = None) -> Task[ProgressState]:
    """Return the background task that checks data set `name` in the folder `root`; the task folder holds the result."""
    where = hashlib.sha256(str(root or "").encode()).hexdigest()[:12]
    return Task(locate.cache_folder() / "checks" / f"{name}-{where}", ProgressState)


def start(name: str, root: Path | str | None = None) -> None:
    """Check every sample in a background process (`python -m dmlcore data check NAME`).

    Raises JobError if such a process is already running.
    """
    where = ["--root", str(root)] if root else []
    task_of(name, root).start(["-m", "dmlcore", "data", "check", name, *where], ProgressState())


def run(name: str, root: Path | str | None = None) -> tuple[DataCheck, Report]:
    """Check every sample in this process and store the result; return it with a report on the data set.

    Raises DataError if the data set cannot be read.
    """
    task = task_of(name, root)
    listed = report.report(name, root)
    samples = listed.located.samples
    if samples is None:
        raise DataError("; ".join(listed.problems) or f"{name} was not found on this machine, so it cannot be checked")
    results: list[DataCheck] = []

    def job(progress: Progress[ProgressState]) -> ProgressState:
        result = examine(samples, lambda done, total: progress.report("reading every sample", done, total))
        atomic_files.replace_json(task.path / "result.json", asdict(result))
        results.append(result)
        return progress.finished(f"{result.samples:,} samples read in {result.seconds:.1f} s")

    task.execute(job, ProgressState())
    return results[0], listed


def result(name: str, root: Path | str | None = None) -> DataCheck | None:
    """Return the last finished check, or None if there is none; it is outdated if `stamp_of` differs from `stamp`."""
    try:
        return TypeAdapter(DataCheck).validate_json((task_of(name, root).path / "result.json").read_bytes())
    except (OSError, ValueError):
        return None


def stamp_of(made: Dataset | Samples) -> str:
    """Return a digest of the labels and of the names, sizes and modification times of the files."""
    digest = hashlib.sha256(made.labels.tobytes())
    for file in made.files or ():
        try:
            status = file.stat()
            digest.update(f"{file}\0{status.st_size} {status.st_mtime_ns}\n".encode(errors="surrogateescape"))
        except OSError:
            digest.update(f"{file}\0-\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]


def examine(made: Dataset | Samples, progress: Callable[[int, int], object] = lambda done, total: None) -> DataCheck:
    """Read every sample and return the findings; image files are decoded, other inputs only hashed.

    `progress` receives the number of completed samples and the total.
    """
    begun, stamp = time.monotonic(), stamp_of(made)
    digests: dict[bytes, list[int]] = {}
    unreadable: list[tuple[str, str]] = []
    for index, digest in enumerate(_contents(made, progress)):
        if isinstance(digest, DataError):
            unreadable.append((_key(made, index), str(digest)))
        else:
            digests.setdefault(digest, []).append(index)
    # only decoded images were checked so far; bytes between the images of a shard may be damaged as well
    if isinstance(made.files, ShardImages) and not unreadable:
        unreadable = made.files.shards.damaged_shards()
    copies = [tuple(group) for group in digests.values() if len(group) > 1]
    copies.sort(key=lambda group: -len({int(made.labels[index]) for index in group}))
    return DataCheck(
        samples=len(made.labels),
        failures=len(unreadable),
        unreadable=tuple(unreadable[:LISTED]),
        groups=len(copies),
        copies=tuple(copies[:LISTED]),
        seconds=time.monotonic() - begun,
        stamp=stamp,
    )


def _contents(made: Dataset | Samples, progress: Callable[[int, int], object]) -> Iterator[bytes | DataError]:
    """Yield for each sample a digest of its content, or the DataError raised when it was read."""
    total = len(made.labels)
    with ThreadPoolExecutor(images.WORKERS, "check") as pool:  # Pillow releases the GIL while it decodes
        for begin in range(0, total, CHUNK):
            progress(begin, total)
            if made.files is not None:
                yield from pool.map(_decoded, made.files[begin : begin + CHUNK])
            else:
                rows = np.asarray(made.inputs[np.arange(begin, min(total, begin + CHUNK))])
                yield from (hashlib.sha256(np.ascontiguousarray(row).tobytes()).digest() for row in rows)
        progress(total, total)


def _decoded(file: Path) -> bytes | DataError:
    try:
        images.with_short_side(file, SHORT)
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").digest()
    except DataError as error:
        return error
    except OSError as error:
        return DataError(f"image {file} cannot be read: {error}")


def verdicts(check: DataCheck, made: Dataset) -> tuple[str, ...]:
    """Return warnings about unreadable samples and about groups of identical samples; () if there are none."""
    sentences = []
    if check.failures:
        key, reason = check.unreadable[0]
        sentences.append(f"{check.failures:,} of {check.samples:,} images cannot be read, the first {key}: {reason}")
    split_of = np.full(len(made.labels), "", dtype="U10")
    for name, rows in made.splits.items():
        split_of[rows] = name
    learned = np.isin(split_of, ("train", "validation"))
    groups = [np.array(group) for group in check.copies if max(group) < len(made.labels)]
    classes = [group for group in groups if len(np.unique(made.labels[group])) > 1]
    leaks = [group for group in groups if learned[group].any() and not learned[group].all()]
    for which, what in ((classes, "are in several classes"), (leaks, "are in both train and test")):
        if which:
            first = " = ".join(f"{_key(made, int(i))} ({made.class_names[made.labels[i]]})" for i in which[0][:4])
            sentences.append(f"{len(which):,} groups of identical samples {what}, the first {first}")
    if rest := check.groups - len({id(group) for group in [*classes, *leaks]}):
        sentences.append(f"{rest:,} groups of identical samples are within one class and one side of the split")
    return tuple(sentences)


def _key(made: Dataset | Samples, index: int) -> str:
    return made.keys[index] if made.keys is not None else f"sample {index}"
