"""Generator of two figures that introduce the project.

Run `make pictures` or `python -m docs.make_pictures [--run RUN] [--to FOLDER]`. field.png shows a force field on a dark
background. failure.png shows a failed query with its neighbours, and how a step of each loss would change their
distances. The query is from the shipped example, or from another evaluated run given with `--run`.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle
from PIL import Image

from dmlcore import losses
from dmlcore.data import Dataset
from dmlcore.experiments import example
from dmlcore.figures import strokes
from dmlcore.figures.fields import draw_field, energy_latex, save_figure, sheet
from dmlcore.inspection.failure.best_loss import BestLoss, best_loss, merit
from dmlcore.inspection.failure.one_step import RetrievalFailure, Step, failures, neighbours
from dmlcore.inspection.images import drawer, fit_into
from dmlcore.inspection.neighbours import TestNeighbours, read
from dmlcore.losses import TripletLoss
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.training.build import load_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).resolve().parent / "pictures"
INCHES, DPI = (16.0, 9.0), 120  # 1920 x 1080 pixels
INK, FAINT = strokes.INK[True], "#a4adb9"
BETTER, WORSE = INK["force"], INK["negative"]
LENGTH = 0.1  # length of the step for which the effect of each loss is shown; the default of the Failures page
NEAREST = 6
FIELD = (
    "A and P have the same class and attract\neach other.",
    "N has another class and is pushed away.",
    "The colour is the loss for each position\nof N; white arrows are the force on N.",
    "Outside the line and inside the dashed\nline there is no force.",
)
MISSING = "the shipped example is missing: name an evaluated run with --run"


def field() -> bytes:
    """Draw a force field on a dark background; return it as PNG."""
    loss = losses.create("distance_sensitive")
    drawn = draw_field(
        loss, (0, 0), (0.5, 0), (0.35, 0.75), view=(0.25, 0.05, 1.5), title="", dark=True, size=5.2, plain=True
    )
    with sheet(*INCHES, True) as figure:
        figure.set_layout_engine("none")
        _image(figure, _pixels(save_figure(drawn, format="png", dpi=205)), (0.452, 0.03, 0.94 * 9 / 16, 0.94))
        _words(figure, 0.05, 0.85, "A loss is a field of forces", size=32, weight="bold")
        _words(figure, 0.05, 0.735, f"$E = {energy_latex(loss)}$", size=27)
        top = 0.61
        for words in FIELD:
            _words(figure, 0.05, top, words, size=20.5, va="top", linespacing=1.4)
            top -= 0.06 * len(words.splitlines()) + 0.03
        _words(
            figure,
            0.05,
            0.06,
            "DML Lab: see what a loss does, train with it, look at what was learned",
            size=13,
            color=FAINT,
        )
    return small(save_figure(figure, format="png", dpi=DPI))


def failure(run: Run, query: int | None = None) -> bytes:
    """Draw a retrieval failure of a run as PNG: the query, its neighbours, and a table with the effect of each loss.

    Args:
        run: An evaluated run.
        query: Index of the query in the test split, as in the URL of the Failures page; None selects the worst query.

    Raises:
        RunError: If the run has not been evaluated or has no such query.
    """
    source = run.embeddings()
    if source is None:
        raise RunError(f"{run.id} has not been evaluated: dml evaluate {run.id}")
    test, data = read(source), load_data(run.spec)
    if query is None:
        query = int(failures(test)[0])
    elif not 0 <= query < len(test.labels) or np.isnan(test.average_precision[query]):
        raise RunError(f"--query: {run.id} has no query {query}, or its class has no other sample")
    right, wrong = (int(neighbours(test, query, right=kind)[0]) for kind in (True, False))
    case = RetrievalFailure(test, query, right, wrong, on_sphere=run.spec.model.normalize)
    trained = {run.spec.loss.name: run.spec.loss.parameters}
    compared = [losses.create(name, **trained.get(name, {})) for name in losses.names()]
    steps = case.steps(compared, 0.0, length=LENGTH)
    with sheet(*INCHES, True) as figure:
        figure.set_layout_engine("none")
        _head(figure, data, test, case, run)
        _strip(figure, data, test, case)
        _table(figure, case, compared, steps)
        _verdict(figure, case, compared, steps)
        _words(figure, 0.05, 0.03, _origin(run, case), size=12, color=FAINT)
    return small(save_figure(figure, format="png", dpi=DPI))


def chosen(store: RunStore, name: str | None) -> Run:
    """Return the run with this name, or the shipped example if None.

    Raises:
        RunError: If there is no such run; the message states how to name one.
    """
    run = store.open(name) if name else example.find(store)
    if run is None:
        raise RunError(MISSING)
    return run


def _class(data: Dataset, test: TestNeighbours, row: int) -> str:
    return data.class_names[int(test.labels[row])]


def _head(figure: Figure, data: Dataset, test: TestNeighbours, case: RetrievalFailure, run: Run) -> None:
    unseen = "a class that was not trained on" if run.spec.data.split == "classes" else "the test split"
    bird, other = (_class(data, test, row) for row in (case.query, case.wrong))
    _words(figure, 0.05, 0.92, f"{bird}, taken for {other}", size=30, weight="bold")
    _words(
        figure,
        0.05,
        0.86,
        f"A query of {unseen}. The first sample of its own class has rank {case.before.right:,} of {case.searched:,}.",
        size=18,
    )


def _strip(figure: Figure, data: Dataset, test: TestNeighbours, case: RetrievalFailure) -> None:
    draw = drawer(data)

    def tile(row: int, box: tuple[float, float, float, float], colour: str, words: str) -> None:
        axes = _image(figure, np.asarray(fit_into(draw(int(test.indices[row])), 512)), box)
        axes.set_axis_on()
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set(color=colour, linewidth=3)
        left, bottom, _, _ = box
        _words(figure, left, bottom - 0.032, words, size=15, color=colour)

    tile(case.query, (0.05, 0.36, 0.44 * 9 / 16, 0.44), INK["text"], "the query")
    _words(figure, 0.05, 0.262, "✗ another class, with its rank", size=15, color=WORSE)
    _words(figure, 0.05, 0.213, "✓ its own class", size=15, color=BETTER)
    nearest = [int(row) for row in test.neighbours[case.query, :NEAREST]]
    for k, row in enumerate(nearest if case.right in nearest else [*nearest[:-1], case.right]):
        same = row == case.right or bool(test.labels[row] == test.labels[case.query])
        rank = nearest.index(row) + 1 if row in nearest else case.before.right
        box = (0.311 + (k % 2) * 0.096, 0.655 - (k // 2) * 0.205, 0.145 * 9 / 16, 0.145)
        tile(row, box, BETTER if same else WORSE, f"{'✓' if same else '✗'} {rank:,}")


def _table(figure: Figure, case: RetrievalFailure, compared: list[TripletLoss], steps: list[Step]) -> None:
    columns = ((0.512, "left"), (0.817, "right"), (0.895, "right"), (0.965, "right"))
    names = ("one step of", "own class", "wrong one", "AP@R, %")
    top, line, before = 0.785, 0.0465, case.before
    for (x, side), name in zip(columns, names, strict=True):
        _words(figure, x, top, name, size=15, color=FAINT, ha=side)
    order = sorted(range(len(steps)), key=lambda i: merit(steps[i].after), reverse=True)
    judged = _judged(case, compared, steps)
    for k, i in enumerate(order, start=1):
        after, y, idle = steps[i].after, top - 0.006 - k * line, not steps[i].forces.active
        best = judged.gain > 0 and compared[i].formula.title in judged.names
        if best:
            band = Rectangle((0.504, y - 0.012), 0.47, line, color=BETTER, alpha=0.14, linewidth=0)
            figure.add_artist(band)
        _words(
            figure,
            columns[0][0],
            y,
            compared[i].formula.title,
            size=16,
            color=FAINT if idle else INK["text"],
            weight="bold" if best else "normal",
        )
        if idle:
            _words(figure, columns[1][0], y, "no force", size=16, color=FAINT, ha="right")
            continue
        cells = (
            (f"{before.right:,} → {after.right:,}", before.right - after.right),
            (f"{before.wrong:,} → {after.wrong:,}", after.wrong - before.wrong),
            (f"{100 * after.average_precision:.1f}", after.average_precision - before.average_precision),
        )
        for (x, side), (text, gain) in zip(columns[1:], cells, strict=True):
            colour = BETTER if gain > 0 else WORSE if gain < 0 else FAINT
            mark = " ✓" if gain > 0 else " ✗" if gain < 0 else " ="
            _words(figure, x, y, text + mark, size=16, color=colour, ha=side)


def _judged(case: RetrievalFailure, compared: list[TripletLoss], steps: list[Step]) -> BestLoss:
    after = {loss.formula.title: step.after for loss, step in zip(compared, steps, strict=True)}
    return best_loss(case.before, after)


def _verdict(figure: Figure, case: RetrievalFailure, compared: list[TripletLoss], steps: list[Step]) -> None:
    best = _judged(case, compared, steps)
    text = "No loss ranks this query better."
    if best.gain > 0:
        many = len(best.names) > 1
        text = f"{len(best.names)} losses tie for the best" if many else f"{best.names[0]} improves it most"
        ranks = [
            step.after.right for loss, step in zip(compared, steps, strict=True) if loss.formula.title in best.names
        ]
        then = "–".join(f"{rank:,}" for rank in sorted({min(ranks), max(ranks)}))
        text = f"{text}: own class {case.before.right:,} → {then}."
    _words(figure, 0.05, 0.115, text, size=18.5, weight="bold")


def _origin(run: Run, case: RetrievalFailure) -> str:
    return (
        "DML Lab, forces of a failure: one step of the query and its first right and first wrong neighbour. The "
        f"largest step is {LENGTH}\nfor every loss; {case.searched:,} samples are ranked. Small differences are ties. "
        f"Run {run.id}."
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
    """Return the PNG `content` reduced to 256 colours, which makes the file much smaller without a visible loss."""
    file = io.BytesIO()
    Image.open(io.BytesIO(content)).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, 3).save(
        file, "png", optimize=True
    )
    return file.getvalue()


def main(arguments: list[str] | None = None) -> int:
    """Write both figures; return 0, or 1 after printing the reason if there is no run to draw."""
    asked = argparse.ArgumentParser(prog="python -m docs.make_pictures", description=__doc__)
    asked.add_argument("--run", help="run whose failure is drawn [default: the shipped example]")
    asked.add_argument(
        "--query", type=int, help="index of the query, as in the address of Failures [default: the worst query]"
    )
    asked.add_argument("--runs", type=Path, help="folder of the runs [default: $DML_RUNS or ./runs]")
    asked.add_argument("--to", type=Path, default=FOLDER, help="output folder")
    given = asked.parse_args(arguments)
    given.to.mkdir(parents=True, exist_ok=True)
    _write(given.to / "field.png", field())
    try:
        run = chosen(RunStore(given.runs) if given.runs else RunStore(), given.run)
        _write(given.to / "failure.png", failure(run, given.query))
    except RunError as error:
        print(f"failure.png is not drawn: {error}", file=sys.stderr)
        return 1
    return 0


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    print(f"{path}: {len(content):,} bytes")


if __name__ == "__main__":
    sys.exit(main())
