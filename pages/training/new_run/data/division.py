"""Panel that shows size, purpose and example images of each split of a data set."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dmlcore.data import Dataset
from dmlcore.data.report import Report, packed_size
from pages.training.new_run.data import samples
from pages.training.new_run.data.service import DataKey

SEVERAL = 16  # largest number of example images per split, one per class
FOR = {"train": "for training", "validation": "chooses the checkpoint", "test": "for the final scores"}


def show(at: DataKey, report: Report) -> None:
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
                    if made.image is not None:
                        st.html(samples.of_classes(at, made, split.name, SEVERAL))
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
