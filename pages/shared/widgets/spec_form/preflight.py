"""Checks before a training run: summary of the data set, invalid settings, estimates, and protection against double
clicks.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import streamlit as st

from dmlcore.data import Dataset
from dmlcore.inspection.images import data_uri, fit_into
from dmlcore.jobs import launch as jobs
from dmlcore.monitoring.estimate.estimate import DataSize, Estimate, estimate
from dmlcore.spec import DataSpec, RunSpec
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.training import build, objective
from dmlcore.training.build import has_cuda
from dmlcore.training.errors import TrainingError
from pages.shared.server import thumbnails
from pages.shared.state.cache import cached
from pages.shared.widgets import machines

IMAGES, SIDE = 12, 96  # number of example images, and their side in pixels
ESTIMATED_FROM = 40  # maximum number of finished runs that an estimate uses


@dataclass(frozen=True)
class Summary:
    """Facts about a data set that the form shows and uses to check settings.

    `splits` holds (number of samples, number of classes) by name of the split; `examples` holds (class name, image as a
    data: URL).
    """

    splits: dict[str, tuple[int, int]]
    pairable: int  # number of training classes with at least two samples; only these can be in a batch
    input_shape: tuple[int, ...]
    notes: tuple[str, ...]
    examples: tuple[tuple[str, str], ...]


def summary(spec: DataSpec, seed: int) -> Summary:
    """Return the summary of a data set, cached per spec and seed. Raises DataError."""
    return _summary(thumbnails.samples_key(RunSpec(seed=seed, data=spec)))


@st.cache_data(max_entries=64, ttl=600, show_spinner="Reading the data set; an archive is unpacked once …")
def _summary(key: str) -> Summary:
    dataset = build.load_data(RunSpec.from_json(key))
    classes = {split: np.unique(dataset.labels[rows], return_counts=True) for split, rows in dataset.splits.items()}
    return Summary(
        splits={split: (len(rows), len(classes[split][0])) for split, rows in dataset.splits.items()},
        pairable=int((classes["train"][1] > 1).sum()),
        input_shape=tuple(dataset.inputs.shape[1:]),
        notes=tuple(note for note in dataset.notes if not note.startswith(tuple(f"{p}: " for p in dataset.splits))),
        examples=_examples(dataset),
    )


def _examples(dataset: Dataset) -> tuple[tuple[str, str], ...]:
    """Return (class name, image as a data: URL) of one training sample for each of the first IMAGES classes."""
    if dataset.image is None:
        return ()
    rows = dataset.splits["train"]
    firsts = rows[np.unique(dataset.labels[rows], return_index=True)[1][:IMAGES]]
    return tuple(
        (dataset.class_names[dataset.labels[row]], data_uri(fit_into(dataset.image(int(row)), SIDE))) for row in firsts
    )


def problems(spec: RunSpec, summary: Summary) -> list[str]:
    """Return one sentence for each reason why this run would fail, including what the user can do about it."""
    sentences = []
    if spec.batch.classes > summary.pairable:
        sentences.append(
            f"Batch classes: {spec.batch.classes} requested, but the training split has only {summary.pairable} "
            f"classes with at least two samples. Use at most {summary.pairable}, or choose another split."
        )
    if spec.device == "cuda" and not has_cuda() and not machines.chosen():
        sentences.append("Device: this machine has no usable CUDA device. Choose auto or CPU.")
    try:
        objective.refuse_unusable(spec)
    except TrainingError as error:
        sentences.append(str(error)[:1].upper() + str(error)[1:])
    if not machines.chosen() and (absent := _absent_weights(spec.model.start, spec.model.name, spec.fork.run, spec)):
        sentences.append(absent)
    return sentences


@cached(64, 20)  # cached, because the check may send a request to another server, which can take seconds
def _absent_weights(start: str | None, network: str, parent: str, _spec: RunSpec) -> str:
    """Return an error message if the initial weights are unavailable; "" if they are available."""
    try:
        build.refuse_absent_weights(_spec)
    except TrainingError as error:
        return str(error)
    return ""


def estimated(spec: RunSpec, summary: Summary) -> Estimate | None:
    """Return the estimated time and memory of a run; None if the size of its network is unknown."""
    samples = {split: count for split, (count, _) in summary.splits.items()}
    size = DataSize(
        summary.input_shape,
        summary.splits["train"][1],
        samples["train"],
        samples["validation"],
        samples["test"] + samples.get("gallery", 0),
    )
    return estimate(spec, size, _finished(spec.data.name))


def trained_already(spec: RunSpec) -> Run | None:
    """Return the newest finished run with exactly this spec; None if there is none.

    Only the latest ESTIMATED_FROM finished runs on the data set are searched.
    """
    return next((run for run in _finished(spec.data.name) if run.spec == spec), None)


def _finished(data: str) -> list[Run]:
    """Return up to ESTIMATED_FROM finished runs on a data set, newest first."""
    runs = []
    for run in RunStore().find(lambda run_id, brief: brief.data == data, 5 * ESTIMATED_FROM):
        with suppress(RunError):  # deleted at this moment
            if run.state().state == "done":
                runs.append(run)
    return runs[:ESTIMATED_FROM]


class Submits:
    """Launcher that starts at most one run per token, even if several threads call it with the same token."""

    KEPT = 10_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, str] = OrderedDict()

    def launch(self, token: str, spec: RunSpec, store: RunStore, processes: int = 1) -> str:
        """Start a run unless `token` was used before; return the id of the run started with this token.

        Raises the errors of jobs.launch; the token can then be used again.
        """
        # starts one run at a time, so that concurrent calls cannot exceed the queue limit of jobs.launch
        with self._lock:
            if token not in self._runs:
                self._runs[token] = jobs.launch(spec, store, backend=machines.chosen(), processes=processes)
                if len(self._runs) > self.KEPT:
                    self._runs.popitem(last=False)
            return self._runs[token]

    def used(self, token: str) -> bool:
        return token in self._runs


@st.cache_resource
def submits() -> Submits:
    """Return the launcher shared by all sessions of this server."""
    return Submits()
