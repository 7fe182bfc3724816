"""Draws the two pictures for a first slide: make pictures, or python -m docs.make_pictures [--run RUN] [--to FOLDER].

field.png, a force field in the dark, needs nothing. failure.png, a failed query with its neighbours and what one step
of every loss would do to it, needs an evaluated run: the newest of drawn birds, else the example that ships.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from dmlcore import losses
from dmlcore.data import Dataset
from dmlcore.experiments import example
from dmlcore.figures import strokes
from dmlcore.figures.fields import draw_field, energy_latex, save_figure, sheet
from dmlcore.inspection.failure.one_step import RetrievalFailure, Step, failures, neighbours
from dmlcore.inspection.images import drawer, fitted
from dmlcore.inspection.neighbours import TestNeighbours, read
from dmlcore.losses import TripletLoss
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.training.build import load_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).resolve().parent / "pictures"
INCHES, DPI = (16.0, 9.0), 100  # 1600 x 900 pixels
INK, FAINT = strokes.INK[True], "#a4adb9"
BETTER, WORSE = INK["force"], INK["negative"]
RATE = 0.1  # of the step, as the page of failures opens
NEAREST = 6
PREFERRED = "birds"
FIELD = (
    "A and P are of one class: they attract.",
    "N is of another: it is pushed away.",
    "Colour is the loss N would have there,",
    "white arrows the force on it.",
    "Beyond the line, and within the dashed one,",
    "nobody feels a force.",
)
MISSING = (
    "no evaluated run of drawn birds and no example to show a failure of: train one with "
    "'dml train birds' (an hour of one slow core, minutes of a quick one), or name a run with --run"
)


def field() -> bytes:
    """The dark field as PNG."""
    loss = losses.create("distance_sensitive")
    drawn = draw_field(
        loss, (0, 0), (0.5, 0), (0.35, 0.75), view=(0.25, 0.05, 1.5), title="", dark=True, size=5.2, plain=True
    )
    with sheet(*INCHES, True) as figure:
        figure.set_layout_engine("none")
        _image(figure, _pixels(save_figure(drawn, format="png", dpi=170)), (0.452, 0.03, 0.94 * 9 / 16, 0.94))
        _words(figure, 0.05, 0.80, "A loss is a field of forces", size=32, weight="bold")
        _words(figure, 0.05, 0.705, f"$E = {energy_latex(loss)}$", size=22)
        for line, words in enumerate(FIELD):
            _words(figure, 0.05, 0.57 - 0.058 * line, words, size=17.5)
        _words(figure, 0.05, 0.06, "DML Lab: see what a loss does, train with it, look at what was learned", size=12)
    return small(save_figure(figure, format="png", dpi=DPI))


def failure(run: Run) -> bytes:
    """The worst failure of a run as PNG: query, neighbours, and the table of what each loss does to it."""
    source = run.embeddings()
    if source is None:
        raise RunError(f"{run.id} has not been evaluated: dml evaluate {run.id}")
    test, data = read(source), load_data(run.spec)
    query = int(failures(test)[0])
    right, wrong = (int(neighbours(test, query, right=kind)[0]) for kind in (True, False))
    case = RetrievalFailure(test, query, right, wrong, on_sphere=run.spec.model.normalize)
    trained = {run.spec.loss.name: run.spec.loss.parameters}
    compared = [losses.create(name, **trained.get(name, {})) for name in losses.names()]
    steps = case.steps(compared, RATE)
    with sheet(*INCHES, True) as figure:
        figure.set_layout_engine("none")
        _head(figure, data, test, case, run)
        _strip(figure, data, test, case)
        _table(figure, case, compared, steps)
        _verdict(figure, case, steps)
        _words(figure, 0.05, 0.035, _origin(run, case), size=11.5, color=FAINT)
    return small(save_figure(figure, format="png", dpi=DPI))


def chosen(store: RunStore, name: str | None) -> Run:
    """The run to show a failure of; raises RunError with what to do where there is none."""
    if name:
        return store.open(name)
    birds = [run for run in store.list() if run.spec.data.name == PREFERRED and run.embeddings()]
    run = max(birds, key=lambda run: run.id, default=None) or example.find(store)
    if run is None:
        raise RunError(MISSING)
    return run


def _class(data: Dataset, test: TestNeighbours, row: int) -> str:
    return data.class_names[int(test.labels[row])]


def _head(figure: Figure, data: Dataset, test: TestNeighbours, case: RetrievalFailure, run: Run) -> None:
    unseen = "a class that the training never saw" if run.spec.data.split == "classes" else "the test split"
    bird, other = (_class(data, test, row) for row in (case.query, case.wrong))
    _words(figure, 0.05, 0.92, f"{bird}, taken for {other}", size=30, weight="bold")
    _words(
        figure,
        0.05,
        0.865,
        f"A query of {unseen}. The first of its own kind stands at rank {case.before.right:,} of {case.searched:,}.",
        size=16,
    )


def _strip(figure: Figure, data: Dataset, test: TestNeighbours, case: RetrievalFailure) -> None:
    draw = drawer(data)

    def tile(row: int, box: tuple[float, float, float, float], colour: str, words: str) -> None:
        axes = _image(figure, np.asarray(fitted(draw(int(test.indices[row])), 512)), box)
        axes.set_axis_on()
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set(color=colour, linewidth=3)
        left, bottom, _, _ = box
        _words(figure, left, bottom - 0.028, words, size=13, color=colour)

    tile(case.query, (0.05, 0.36, 0.44 * 9 / 16, 0.44), INK["text"], "the query")
    nearest = [int(row) for row in test.neighbours[case.query, :NEAREST]]
    for k, row in enumerate(nearest if case.right in nearest else [*nearest[:-1], case.right]):
        same = row == case.right or bool(test.labels[row] == test.labels[case.query])
        rank = nearest.index(row) + 1 if row in nearest else case.before.right
        box = (0.323 + (k % 2) * 0.101, 0.655 - (k // 2) * 0.205, 0.145 * 9 / 16, 0.145)
        tile(row, box, BETTER if same else WORSE, f"{'✓' if same else '✗'} {rank:,}")


def _table(figure: Figure, case: RetrievalFailure, compared: list[TripletLoss], steps: list[Step]) -> None:
    columns = ((0.532, "left"), (0.795, "right"), (0.885, "right"), (0.955, "right"))
    names = ("one step of", "own kind", "wrong one", "AP@R, %")
    top, line = 0.80, 0.0435
    for (x, side), name in zip(columns, names, strict=True):
        _words(figure, x, top, name, size=13.5, color=FAINT, ha=side)
    order = sorted(range(len(steps)), key=lambda i: (steps[i].after.right, -steps[i].after.wrong))
    before = case.before
    for k, i in enumerate(order, start=1):
        after, y = steps[i].after, top - 0.008 - k * line
        idle = not steps[i].forces.active
        _words(figure, columns[0][0], y, compared[i].formula.title, size=14, color=FAINT if idle else INK["text"])
        cells = (
            (f"{before.right:,} → {after.right:,}", before.right - after.right),
            (f"{before.wrong:,} → {after.wrong:,}", after.wrong - before.wrong),
            (f"{100 * after.average_precision:.1f}", after.average_precision - before.average_precision),
        )
        for (x, side), (text, gain) in zip(columns[1:], cells, strict=True):
            colour = BETTER if gain > 0 else WORSE if gain < 0 else FAINT
            mark = " ✓" if gain > 0 else " ✗" if gain < 0 else " ="
            _words(
                figure,
                x,
                y,
                "no force" if idle and x == columns[1][0] else text + mark,
                size=14.5,
                color=colour,
                ha=side,
            )


def _verdict(figure: Figure, case: RetrievalFailure, steps: list[Step]) -> None:
    nearer, farther = (sum(sign * step.after.right < sign * case.before.right for step in steps) for sign in (1, -1))
    idle = sum(not step.forces.active for step in steps)
    text = f"Of {len(steps)} losses {nearer} bring its own kind nearer, {farther} send it away, {idle} feel no force."
    _words(figure, 0.05, 0.115, text, size=17, weight="bold")


def _origin(run: Run, case: RetrievalFailure) -> str:
    return (
        f"DML Lab, forces of a failure: one step x ← x − {RATE} · gradient on query, first right and first wrong "
        f"neighbour alone,\nall {case.searched:,} ranked anew. Run {run.id}."
    )


def _image(figure: Figure, pixels: np.ndarray, box: tuple[float, float, float, float]) -> Axes:
    axes = figure.add_axes(box)
    axes.imshow(pixels, interpolation="lanczos", aspect="auto", cmap="gray" if pixels.ndim == 2 else None)
    axes.set_axis_off()
    return axes


def _words(
    figure: Figure, x: float, y: float, text: str, *, size: float, color: str = INK["text"], **more: Any
) -> None:
    figure.text(x, y, text, fontsize=size, color=color, **more)


def _pixels(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def small(content: bytes) -> bytes:
    """The same PNG in 256 colours: a fraction of the bytes, without a loss that is seen."""
    file = io.BytesIO()
    Image.open(io.BytesIO(content)).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, 3).save(
        file, "png", optimize=True
    )
    return file.getvalue()


def main(arguments: list[str] | None = None) -> int:
    """Write both pictures; 1 and a sentence where there is no run to show."""
    asked = argparse.ArgumentParser(prog="python -m docs.make_pictures", description=__doc__)
    asked.add_argument("--run", help="whose worst failure is shown")
    asked.add_argument("--runs", type=Path, help="folder of the runs [default: $DML_RUNS or ./runs]")
    asked.add_argument("--to", type=Path, default=FOLDER)
    given = asked.parse_args(arguments)
    given.to.mkdir(parents=True, exist_ok=True)
    _write(given.to / "field.png", field())
    try:
        run = chosen(RunStore(given.runs) if given.runs else RunStore(), given.run)
        _write(given.to / "failure.png", failure(run))
    except RunError as error:
        print(f"failure.png is not drawn: {error}", file=sys.stderr)
        return 1
    return 0


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    print(f"{path}: {len(content):,} bytes")


if __name__ == "__main__":
    sys.exit(main())
