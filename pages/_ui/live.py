"""What the pages know of runs, read from disk: one shared reader of curves, status in words, links by ?run=."""

from __future__ import annotations

import math
import threading
from array import array
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dmlcore import losses
from dmlcore.data import DataError, describe
from dmlcore.listing import Brief, Kept
from dmlcore.rows import Row
from dmlcore.runs import Run, RunError, RunState, RunStore

PACE = 60  # last looks at a run from which its speed is told
MOST_LISTED = 200  # runs in the table
KEPT = 256  # runs whose curves stay in memory: more than are listed, or each look would read all of them anew
MOST_CHOSEN = 8  # runs shown together, one colour each

# Word, icon and colour of each status: never colour alone.
STATUS = {
    "queued": ("queued", ":material/schedule:", "gray"),
    "running": ("running", ":material/play_arrow:", "blue"),
    "done": ("done", ":material/check:", "green"),
    "failed": ("failed", ":material/error:", "red"),
    "cancelled": ("cancelled", ":material/stop_circle:", "gray"),
    "lost": ("lost", ":material/help:", "orange"),
}


class Series:
    """Values by ascending step; a step that comes again replaces itself and all after it, as a resumed run does."""

    def __init__(self) -> None:
        self._steps, self._values = array("q"), array("d")

    def add(self, step: int, value: float) -> None:
        if self._steps and step <= self._steps[-1]:
            cut = bisect_left(self._steps, step)
            del self._steps[cut:], self._values[cut:]
        self._steps.append(step)
        self._values.append(value)

    def __len__(self) -> int:
        return len(self._steps)

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Copies (n,), (n,), as the reader goes on appending."""
        return np.array(self._steps, dtype=np.int64), np.array(self._values, dtype=np.float64)


@dataclass(frozen=True)
class Histogram:
    """Counts of distances of one batch, from 0 to `top`: of pairs of one class, of two classes."""

    step: int
    top: float
    positive: tuple[int, ...]
    negative: tuple[int, ...]


@dataclass
class History:
    """What metrics.jsonl of one run says so far; `scores` by "inputs", "untrained", "trained".

    measures: numbers of the rows "measure" by name; histograms: of the same rows.
    """

    loss: Series = field(default_factory=Series)
    active: Series = field(default_factory=Series)
    validation: Series = field(default_factory=Series)
    measures: dict[str, Series] = field(default_factory=dict)
    histograms: list[Histogram] = field(default_factory=list)
    scores: dict[str, Row] = field(default_factory=dict)
    baselines: dict[tuple[str, str], Row] = field(default_factory=dict)  # further ones, by what and of which part
    pace: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=PACE))  # (step, seconds) as seen
    offset: int = 0

    def take(self, row: Row) -> None:
        kind = row.get("kind")
        if kind == "step":
            self.loss.add(row["step"], row["loss"])
            if "active" in row:
                self.active.add(row["step"], row["active"])
        elif kind == "validation" and row["map_at_r"] is not None:
            self.validation.add(row["step"], row["map_at_r"])
        elif kind == "scores":
            self.scores[row["of"]] = row
        elif kind == "baseline":
            self.baselines[row["of"], row["part"]] = row
        elif kind == "measure":
            self._measured(row)

    def _measured(self, row: Row) -> None:
        step = row["step"]
        for name, value in row.items():
            if name not in ("kind", "step") and isinstance(value, (int, float)):
                self.measures.setdefault(name, Series()).add(step, value)
        if "positive_histogram" in row:
            while self.histograms and self.histograms[-1].step >= step:  # a resume has gone back
                self.histograms.pop()
            counts = tuple(row["positive_histogram"]), tuple(row["negative_histogram"])
            self.histograms.append(Histogram(step, row["histogram_to"], *counts))


class Reader:
    """Reads each metrics.jsonl once and then only what was appended, for all visitors together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, History] = OrderedDict()
        self._scores: Kept[dict[str, Row]] = Kept(10 * KEPT)

    def history(self, run: Run) -> History:
        with self._lock:
            known = self._known.pop(str(run.path), None) or History()
            rows, offset = run.metrics(known.offset)
            if offset < known.offset:  # a resume has cut the file; all rows came again
                known = History()
            for row in rows:
                known.take(row)
            known.offset = offset
            self._known[str(run.path)] = known
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
            return known

    def scores(self, run: Run) -> dict[str, Row]:
        """Its test scores alone, for a table of many runs, whose other rows would take seconds to read."""
        with self._lock:
            return self._scores.get(f"{run.path}/metrics.jsonl", run.scores)


@st.cache_resource
def reader() -> Reader:
    """The one reader of this server."""
    return Reader()


def chosen(store: RunStore) -> tuple[list[Run], int]:
    """The runs that ?run=a,b of this page names, and how many of the names are no runs."""
    names = [name for name in st.query_params.get("run", "")[:1000].split(",") if name]
    runs: list[Run] = []
    for name in dict.fromkeys(names[:MOST_CHOSEN]):
        try:
            run = store.open(name)
            _ = run.state(), run.spec  # raises for a run that cannot be read
            runs.append(run)
        except RunError:
            pass
    return runs, len(dict.fromkeys(names)) - len(runs)


def label(run: Run) -> str:
    """A short name that tells this run from all others; a name that ends with the loss does not say it twice."""
    name, loss = run.spec.name or data_title(run.spec.data.name), loss_title(run.spec.loss.name)
    if run.is_example:
        return f"Example · {name}"
    return " · ".join([name, *([] if name.endswith(loss) else [loss]), run.id[-4:]])


def searched(words: str) -> Callable[[str, Brief], bool]:
    """Whether each of these words stands in the id, the name, the data, the network or the loss of a run."""
    asked = words.casefold().split()

    def fits(run_id: str, brief: Brief) -> bool:
        parts = run_id, brief.name, brief.data, data_title(brief.data), brief.model, brief.loss, loss_title(brief.loss)
        text = "\n".join(parts).casefold()
        return all(word in text for word in asked)

    return fits


@cache
def data_title(name: str) -> str:
    """Title of a data set; its name if this release does not know it."""
    try:
        return describe(name).title
    except DataError:
        return name


@cache
def loss_title(name: str) -> str:
    """Title of a loss; its name if this release does not know it."""
    return losses.describe(name).title if name in (*losses.names(), *losses.batch_names()) else name


def time_left(state: RunState, pace: deque[tuple[int, float]]) -> str:
    """For example "2 min left", from the steps watched lately, as the beginning is slow; notes this state in `pace`."""
    if pace and (state.step, state.seconds) < pace[-1]:
        pace.clear()
    if not pace or state.step > pace[-1][0]:
        pace.append((state.step, state.seconds))
    step, seconds = pace[0] if pace[0][0] < state.step else (0, 0.0)
    if state.step - step < 3:
        return "estimating the time left"
    return f"{duration((state.seconds - seconds) / (state.step - step) * (state.steps - state.step))} left"


def duration(seconds: float) -> str:
    """Seconds as people say them: 8 s, 3 min, 2 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def took(run: Run, state: RunState, steps: str) -> str:
    """The steps, in words, and how long they took; of the example without the time, which was another machine's."""
    return steps if run.is_example else f"{steps} in {duration(state.seconds)}"


def percent(value: float | None) -> str:
    """A score in 0..1 as shown; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def literal(text: str, element: str = "span") -> None:
    """Show text as it is: neither HTML nor Markdown, and its direction stays its own."""
    st.html(f"<{element} style='margin:0'><bdi>{escape(text)}</bdi></{element}>")


def badge(status: str) -> None:
    """The status as a coloured pill with word and icon."""
    word, icon, colour = STATUS[status]
    st.badge(word, icon=icon, color=colour)  # type: ignore[arg-type]  # the table above holds badge colours only


def busy(runs: Sequence[Run]) -> bool:
    """Whether one of the runs waits or works."""
    return any(run.status() in ("queued", "running") for run in runs)
