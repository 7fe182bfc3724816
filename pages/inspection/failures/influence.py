"""Training samples that caused a failure: the job's start button, the images, and a link to train without them.

The influence of a training sample is how far it moved the margin d(A,N) - d(A,P), summed over the training run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import streamlit as st

from dmlcore.data import DataError, Dataset
from dmlcore.inspection.failure.answers import READ_TOGETHER, Question
from dmlcore.inspection.influence import failure
from dmlcore.storage import fork_parent
from dmlcore.storage.runs import Run
from pages.inspection.failures.address import OF
from pages.shared.server import thumbnails
from pages.shared.widgets import job_button, menu
from pages.shared.words import sentences as words

SHOWN = 12  # samples of each kind
CLASSES = 3  # maximum number of classes named in the sentence
STYLE = """<style>
.influence { display: grid; grid-template-columns: repeat(auto-fill, minmax(72px, 1fr)); gap: 10px; max-width: 1080px;
  font-size: 12px; line-height: 1.3; }
.influence figure { margin: 0; min-width: 0; }
.influence img { display: block; box-sizing: border-box; width: 100%; aspect-ratio: 1; object-fit: contain;
  padding: 2px; border: 2px solid var(--behind); background: rgb(128 128 128 / .10); }
.influence.helped img { border-color: var(--ahead); border-radius: 8px; }
.influence .bar { display: block; height: 4px; margin: 3px 0; background: var(--behind); }
.influence.helped .bar { background: var(--ahead); }
.influence .name { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.influence b { font-variant-numeric: tabular-nums; }
@media (max-width: 520px) { .influence { grid-template-columns: repeat(4, minmax(0, 1fr)); } }
</style>"""


def show(run: Run, triplet: Mapping[str, Any]) -> None:
    """Show the section on training samples that caused the failure.

    Args:
        triplet: ID of the run, and the data set indices of the query and its correct and incorrect neighbour.
    """
    st.subheader("Which training samples caused this failure?", anchor=False)
    st.markdown(
        "Find the training samples that reduced the margin d(A,N) − d(A,P) most.",
        help="Training steps are repeated bit for bit, with and without each sample of the batch. The influence of a "
        "sample is the difference in the margin, summed over training. The run is not changed.",
    )
    if run.spec.conditioning.neighbours:
        st.info(READ_TOGETHER, icon=":material/info:")
        return
    busy = job_button.at_work(run, "influence")
    path = failure.path_of(run, *(triplet[name] for name in OF))
    result = failure.read(path)
    st.button(
        "Find samples again" if result else "Find samples",
        key="influence",
        icon=":material/person_search:",
        disabled=busy,
        on_click=_begin,
        args=(run, triplet),
    )
    if not job_button.follow(run, "influence", busy) and result:
        try:
            _result(run, result, thumbnails.dataset(run.spec))
        except DataError as error:
            st.error(words.plain(error), icon=":material/error:")


def _result(run: Run, result: dict[str, Any], data: Dataset) -> None:
    def class_of(sample: int) -> str:
        name: str = data.class_names[data.labels[sample]]
        return name

    harmful, helpful = (result[kind][:SHOWN] for kind in ("harmful", "helpful"))
    if not harmful:
        st.info("No training sample harmed this query in the steps that were analysed.", icon=":material/info:")
        return
    share = sum(value for _, value in harmful) / result["harm"]
    st.info(
        f"**The {len(harmful)} most harmful of {result['train']:,} training samples caused {share:.0%} of the harm.**",
        icon=":material/person_search:",
    )
    st.text(classes([class_of(int(sample)) for sample, _ in harmful]))
    address = thumbnails.address(run)
    for kind, title, samples, whole in (
        ("harmed", "Most harmful: they moved N closer or P away", harmful, result["harm"]),
        ("helped", "Most helpful: they moved P closer or N away", helpful, result["help"]),
    ):
        st.markdown(f"**{title}**")
        st.html(f"{STYLE}{images(kind, samples, whole, class_of, address)}")
    _fork(run, result)
    seen, train = result["seen"], result["train"]
    st.caption(
        f"Computed from {result['steps']:,} of the {result['end'] - result['begin']:,} steps up to the tested weights, "
        f"which used {seen:,} of {train:,} training samples. First-order estimate as in TracIn (Pruthi et al. 2020); "
        "effects on later steps are ignored, so verify it with a fork."
    )


def classes(names: Sequence[str]) -> str:
    """Return a sentence with the most frequent class names, at most CLASSES of them, and the count of each."""
    counted = Counter(names).most_common()
    named = ", ".join(f"{name} ({count})" for name, count in counted[:CLASSES])
    more = len(counted) - CLASSES
    others = f" and {more} more" if more > 0 else ""
    return f"{'Classes' if len(counted) > 1 else 'Class'}: {named}{others}."


def images(
    kind: str, samples: Sequence[Sequence[float]], whole: float, class_of: Callable[[int], str], address: str
) -> str:
    """Return HTML with the images of training samples and the share of each in the total influence `whole`.

    Args:
        kind: "harmed" or "helped".
        samples: (data set index, influence) of each sample.
        address: Base URL of the images.
    """
    largest = max((abs(value) for _, value in samples), default=1.0)
    cells = []
    for number, value in samples:
        sample, share = int(number), value / whole
        name = escape(class_of(sample))
        alt = escape(f"training sample {sample}, class {class_of(sample)}, {kind}: {share:.1%}")
        cells.append(
            f'<figure title="{alt}"><img src="{escape(address)}{sample}" alt="{alt}" loading="lazy">'
            f'<span class="bar" style="width:{100 * abs(value) / largest:.0f}%"></span>'
            f'<figcaption><b>{share:.1%}</b><bdi class="name">{name}</bdi></figcaption></figure>'
        )
    return f'<div class="influence {kind}">{"".join(cells)}</div>'


def _fork(run: Run, result: Mapping[str, Any]) -> None:
    """Show a link to the form that continues the run from its earliest checkpoint without the most harmful samples."""
    samples = [int(sample) for sample, _ in result["harmful"]][: failure.count_listed(result["train"])]
    start = min((step for step in fork_parent.steps(run.path) if step < result["end"]), default=None)
    if start is None:
        st.caption("This run kept no checkpoint to fork from. Train with “Keep a checkpoint every”.")
        return
    menu.link(
        "fork",
        f"Fork without the {len(samples)} most harmful samples",
        {"run": run.id, "step": str(start), "without": ",".join(map(str, samples))},
        icon="fork_right",
    )


def _begin(run: Run, triplet: Mapping[str, Any]) -> None:
    job_button.begin(run, "influence", Question(*(triplet[name] for name in OF)).to_json())
