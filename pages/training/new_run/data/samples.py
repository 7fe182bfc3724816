"""Samples of a data set: sizes and images of its splits, images by class, a scatter plot and a histogram."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import altair as alt
import numpy as np
import streamlit as st

from dmlcore.data import DataError, Dataset
from dmlcore.data.report import Report, packed_size
from dmlcore.figures.curves import COLOURS
from dmlcore.figures.vega_lite import ROWS, Spec, specification
from pages.training.new_run.data import service as data_service
from pages.training.new_run.data.service import DataKey

CLASSES, EACH = 6, 8  # number of randomly chosen classes, and of images per class
MOST_SHOWN = 12  # most selected classes
BINS = 30
SEVERAL = 16  # largest number of example images per split, one per class
FOR = {"train": "for training", "validation": "chooses the checkpoint", "test": "for the final scores"}

DAMAGED = '<div class="bad" title="{}">cannot be read</div>'
STYLE = """<style>
.samples { display: flex; flex-direction: column; font-size: 12px; line-height: 1.25; }
.samples .row { display: flex; gap: 12px; padding: 8px 0; border-top: 1px solid rgb(128 128 128 / .28); }
.samples .row:first-of-type { border-top: 0; }
.samples .name { flex: none; width: 128px; overflow-wrap: anywhere; }
.samples .name bdi { font-weight: 600; font-size: 13px; display: -webkit-box; -webkit-line-clamp: 3;
  -webkit-box-orient: vertical; overflow: hidden; }
.samples .name span { opacity: .75; }
.samples .found { display: grid; grid-template-columns: repeat(8, minmax(0, 88px)); gap: 6px; flex: 1; }
.samples img, .samples .bad { width: 100%; aspect-ratio: 1; object-fit: contain; border-radius: 4px;
  background: rgb(128 128 128 / .10); }
.samples .bad { display: flex; align-items: center; justify-content: center; text-align: center; box-sizing: border-box;
  border: 2px dashed var(--wrong); }
.division { display: flex; flex-wrap: wrap; gap: 4px; }
.division img { width: 40px; height: 40px; object-fit: contain; border-radius: 4px; background: var(--tint); }
.st-key-splits > [data-testid="stLayoutWrapper"] { align-self: stretch; }
.st-key-splits > [data-testid="stLayoutWrapper"] > * { height: 100%; }
@media (max-width: 640px) { .samples .row { flex-direction: column; gap: 4px; } .samples .name { width: auto; }
  .samples .found { grid-template-columns: repeat(4, minmax(0, 88px)); } }
</style>"""


def show_splits(at: DataKey, report: Report) -> None:
    """Show the size and example images of each split, and compare the sizes with published ones.

    A sentence states if the test classes are unseen. For a data set stored in shards, the number and total size of the
    shards are also shown.
    """
    made = report.dataset
    assert made is not None
    if packed := packed_size(made):
        st.caption(f":material/inventory_2: Packed into {packed}.")
    with st.container(horizontal=True, key="splits"):
        for split in report.splits:
            if split.samples:
                with st.container(border=True):
                    shown = f"{split.classes:,} classes"
                    st.metric(split.name, f"{split.samples:,}", shown, delta_color="off", delta_arrow="off")
                    st.caption(FOR.get(split.name, "searched for neighbours"))
                    if made.image is not None and (tiles := of_classes(at, made, split.name, SEVERAL)):
                        st.html(tiles)
    st.markdown(verdict(made))
    for split in report.compared:
        published = split.published
        assert published is not None
        size = f"{published.samples:,} samples of {published.classes:,} classes"
        if split.deviation:
            st.markdown(f":orange[**≠**] {split.name}: {split.deviation}; published: {size}.")
        else:
            st.markdown(f":green[**✓**] {split.name}: {size}, as published.")


def verdict(made: Dataset) -> str:
    """Return a sentence that states if all, some or none of the test classes are in the training split."""
    learned, asked = (set(np.unique(made.labels[made.splits[split]]).tolist()) for split in ("train", "test"))
    if not learned & asked:
        return (
            "**Unseen classes** (zero-shot): no test class is in the training split, so the network must learn what "
            "makes two samples similar, not what the classes are."
        )
    if asked <= learned:
        return "**Known classes**: the test split has new samples of the training classes, the easier case."
    return f"**Mixed**: {len(asked - learned):,} of the {len(asked):,} test classes are not in the training split."


def images(at: DataKey, made: Dataset, split: str, draw: int, chosen: Sequence[int]) -> str:
    """Return HTML with random images from a split, of the `chosen` classes or, if none are chosen, of random classes.

    `draw` is the seed of the random choice.
    """
    rows = made.splits[split]
    labels = made.labels[rows]
    random = np.random.default_rng([draw, 7])
    classes = [label for label in chosen if (labels == label).any()][:MOST_SHOWN]
    if not chosen:
        present = np.unique(labels)
        classes = np.sort(random.permutation(present)[:CLASSES]).tolist()
    shown = []
    for label in classes:
        members = rows[labels == label]
        few = np.sort(random.permutation(members)[:EACH])
        tiles = "".join(_tile(at, made, int(index)) for index in few)
        name = escape(made.class_names[label])
        title = f'<bdi title="{name}">{name}</bdi><span>{len(members):,} in {split}</span>'
        shown.append(f'<div class="row"><div class="name">{title}</div><div class="found">{tiles}</div></div>')
    return f'{STYLE}<div class="samples">{"".join(shown)}</div>'


def of_classes(at: DataKey, made: Dataset, split: str, several: int) -> str:
    """Return HTML with one image from each of at most `several` classes of a split, evenly spaced by class index.

    Images that cannot be read are left out; the page lists them below.
    """
    rows = made.splits[split]
    labels, firsts = np.unique(made.labels[rows], return_index=True)
    spread = np.unique(np.linspace(0, len(labels) - 1, min(several, len(labels))).round().astype(int))
    tiles = "".join(_tile(at, made, int(rows[firsts[k]]), damaged="") for k in spread)
    return f'{STYLE}<div class="division">{tiles}</div>' if tiles else ""


def _tile(at: DataKey, made: Dataset, index: int, damaged: str = DAMAGED) -> str:
    key = made.keys[index] if made.keys is not None else f"sample {index}"
    title = escape(f"{made.class_names[made.labels[index]]}: {key} (sample {index})")
    try:
        address = data_service.image_address(at, index)
    except DataError as error:
        return damaged.format(escape(str(error)))
    return f'<img src="{address}" alt="{title}" title="{title}">'


def histogram(made: Dataset) -> tuple[Spec, dict[str, Any]] | None:
    """Return the Vega-Lite specification and data columns of a histogram of class sizes by split.

    Returns None if, within each split, all classes have the same size.
    """
    counts = {
        split: np.unique(made.labels[rows], return_counts=True)[1] for split, rows in made.splits.items() if len(rows)
    }
    if all(len(np.unique(sizes)) == 1 for sizes in counts.values()):
        return None
    low, high = min(int(c.min()) for c in counts.values()), max(int(c.max()) for c in counts.values())
    width = max(1, -(-(high + 1 - low) // BINS))
    edges = np.arange(low, high + width + 1, width)
    columns: dict[str, list[Any]] = {"from": [], "to": [], "classes": [], "split": [], "samples": []}
    for split, sizes in counts.items():
        for left, number in zip(edges[:-1].tolist(), np.histogram(sizes, edges)[0].tolist(), strict=True):
            if number:
                columns["from"].append(left - 0.5)
                columns["to"].append(left + width - 0.5)
                columns["classes"].append(number)
                columns["split"].append(split)
                columns["samples"].append(str(left) if width == 1 else f"{left} to {left + width - 1}")
    order = list(counts)
    chart = alt.Chart(ROWS, height=260).mark_bar(binSpacing=1)
    scale = alt.Scale(domain=order, range=COLOURS[: len(order)])
    chart = chart.encode(
        alt.X("from:Q", title="samples per class", bin=alt.BinParams(binned=True), scale=alt.Scale(zero=False)),
        alt.X2("to"),
        alt.Y("classes:Q", title="classes", stack="zero"),
        alt.Color("split:N", title=None, sort=order, scale=scale, legend=alt.Legend(orient="top")),
        tooltip=["split:N", "samples:N", "classes:Q"],
    )
    return specification(chart), columns


def scatter(at: DataKey, made: Dataset) -> tuple[Spec, dict[str, Any]]:
    """Return the Vega-Lite specification and data columns of a scatter plot of vectors, coloured by class.

    The axes are the first two principal components.
    """
    rows, points = data_service.project(at)
    names = [made.class_names[label] for label in made.labels[rows].tolist()]
    columns = {"first": points[:, 0].tolist(), "second": points[:, 1].tolist(), "class": names}
    order = list(made.class_names)
    scale = alt.Scale(scheme="tableau20", domain=order)
    legend = alt.Legend(columns=2, symbolLimit=40)
    chart = alt.Chart(ROWS, height=380).mark_point(filled=True, size=22, opacity=0.75)
    chart = chart.encode(
        alt.X("first:Q", title="first principal component"),
        alt.Y("second:Q", title="second"),
        alt.Color("class:N", title=None, sort=order, scale=scale, legend=legend),
        tooltip=["class:N"],
    )
    return specification(chart), columns
