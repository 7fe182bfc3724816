"""Inspection of a million test embeddings: time and memory of the operations behind the Inspection pages.

python -m benchmarks.million [POINTS [DIMENSIONS [KIND]]]. The default is 1,000,000 x 128 in classes of 50; all queries
are searched with an index of type KIND (hnsw by default; "-" skips this step). Each step runs in its own process and
reports seconds, processor seconds and its peak of anonymous memory (RssAnon; the embeddings are memory-mapped and
belong to the page cache).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.harness import in_process, memory, points_in_classes

CLASS = 50
NOISE = 1.6  # length of the noise relative to a class centre, chosen such that a third of the queries fail
EVERY = 0.1  # seconds between two memory samples


def main() -> None:
    """Run each step in its own process and print one line per step."""
    given = sys.argv[1:] + ["1000000", "128", "hnsw"][len(sys.argv) - 1 :]
    count, dimensions, kind = int(given[0]), int(given[1]), given[2]
    load = os.getloadavg()[0]
    print(f"{count:,} x {dimensions}, classes of {CLASS}, {os.cpu_count()} cores, load {load:.1f}", flush=True)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "embeddings.npz"
        write(path, count, dimensions)
        for step in STEPS:
            if step == "searched_all" and kind == "-":
                continue
            in_process(measured, step, path, kind)
    print(f"load {os.getloadavg()[0]:.1f}")


def write(path: Path, count: int, dimensions: int) -> None:
    """Write embeddings to `path` in the format of an evaluation: unit vectors around a random centre per class."""
    from dmlcore.storage import arrays

    points = np.empty((count, dimensions), np.float32)
    points_in_classes(points, CLASS, NOISE)
    content = np.random.default_rng(1).integers(0, 2**31, (count, 8))
    with path.open("wb") as file:
        indices = np.arange(count)
        arrays.save(file, embeddings=points, labels=indices // CLASS, indices=indices, content=content)


def opened(path: Path, kind: str) -> str:
    """Open the embeddings for the first time, which searches a sample of the queries; return the scores as text."""
    from dmlcore.inspection import neighbours

    test = neighbours.read(path)
    assert test.is_sample or len(test.labels) < 200_000
    recall, precision = test.interval(test.right[:, 0]), test.interval(test.average_precision)
    return f"R@1 {test.recall_at_1:.3f} ± {recall or 0:.3f}, MAP@R {test.map_at_r:.3f} ± {precision or 0:.3f}"


def opened_again(path: Path, kind: str) -> str:
    """Open the embeddings again in a new process, as a restarted server does; return the scores as text."""
    return opened(path, kind)


def ten_shown(path: Path, kind: str) -> str:
    """Search ten queries that were not searched before, as a gallery page sorted by index does.

    Returns the time as text.
    """
    from dmlcore.inspection import neighbours

    test = neighbours.read(path)
    rows = np.flatnonzero(~test.queries)[:10]
    begin = time.perf_counter()
    test.search_rows(rows)
    return f"{time.perf_counter() - begin:.1f} s of it the search"


def confused(path: Path, kind: str) -> str:
    """Compute the class pairs and the distances for the Confusions page; return their counts as text."""
    from dmlcore.inspection import confusions, distance_density, neighbours

    test = neighbours.read(path)
    table = confusions.of_neighbours(test.labels, test.neighbours, test.queries, 8)
    pairs = confusions.pairs(table)
    density = distance_density.measure(test.embeddings, test.labels, test.is_gallery)
    return f"{len(pairs.first)} pairs of {len(table.classes):,} classes, {density.queries:,} queries measured"


def searched_all(path: Path, kind: str) -> str:
    """Search all queries as the app's job does; return its forecast, the score and the estimated errors as text."""
    from dmlcore.inspection import neighbours, whole_search

    test = neighbours.read(path)
    forecast = {cost.kind: cost for cost in whole_search.forecast(len(test.labels), *test.embeddings.shape)}
    choice = whole_search.WholeSearch.from_json(f'{{"kind": "{kind}"}}')
    lists, known = whole_search.search_all(test.embeddings, test.labels, test.is_gallery, choice)
    cost = forecast[choice.kind]
    words = "exact" if known is None else f"{known.words}; MAP@R {known.precision:+.4f} ± {known.precision_off:.4f}"
    scores = f"MAP@R {np.nanmean(lists['average_precision']):.4f}"
    return f"forecast {cost.seconds:.0f} s, {cost.bytes / 1e9:.1f} GB; {scores}; {words}"


def mapped(path: Path, kind: str) -> str:
    """Compute a map of a balanced sample and place the remaining points on it; return the time and quality as text."""
    from dmlcore.inspection import neighbours
    from dmlcore.inspection.maps import placing
    from dmlcore.inspection.maps.maps import draw
    from dmlcore.inspection.maps.settings import Settings

    test = neighbours.read(path)
    sample = placing.draw_balanced(test.labels, placing.SAMPLE)
    plane = draw(test.embeddings[sample], Settings())
    begin = time.perf_counter()
    points = placing.place_all(test.embeddings, sample, plane, linear=False)
    placed = time.perf_counter() - begin
    known = placing.quality_of_many(test.embeddings, points, sample)
    return f"{len(sample):,} by t-SNE, the others placed in {placed:.0f} s; {known.words if known else ''}"


STEPS: dict[str, Callable[[Path, str], str]] = {
    each.__name__: each for each in (opened, opened_again, ten_shown, confused, searched_all, mapped)
}


def measured(step: str, path: Path, kind: str) -> None:
    """Run one step in this process and print its time and its peak of anonymous memory."""
    peak, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(EVERY):
            peak[0] = max(peak[0], memory("RssAnon"))

    watcher = threading.Thread(target=look)
    watcher.start()
    begin, processor = time.perf_counter(), time.process_time()
    words = STEPS[step](path, kind)
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    over.set()
    watcher.join()
    print(
        f"{step:13} {seconds:8.1f} s {processor:8.1f} s of processor time {peak[0] / 1e9:6.2f} GB  {words}", flush=True
    )


if __name__ == "__main__":
    main()
