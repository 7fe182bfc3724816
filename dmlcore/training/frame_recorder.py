"""Recorder of validation frames, from which a run's page shows how the embeddings change during training.

Recording does not use the random state of the training, so weights and scores do not depend on it.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import torch

from dmlcore.data import Dataset
from dmlcore.spec.sections import ScheduleSpec
from dmlcore.storage import validation_frames
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.validation_frames import MAX_POINTS, NEIGHBOURS, QUERIES, Frame
from dmlcore.typing import Bools, Floats, Ints, Singles

MAX_FRAMES = 300  # a run with more validations records every second, third ... one
MAX_CLASSES = 50  # with more classes, each would have too few samples on the map to show whether it forms a cluster
log = logging.getLogger(__name__)


class FrameRecorder:
    """Callable that writes one frame for each validation of a run into its directory.

    Args:
        run: Run directory.
        schedule: Schedule of the run, which determines which validations are recorded.
        data: Data set of the run.
        rows: Indices in the data set of the embedded samples, (n,).
        is_gallery: Mask of the samples that are only searched, (n,); if it is all False, queries search all samples.
        seed: Seed that determines samples and queries.
    """

    def __init__(
        self, run: Path, schedule: ScheduleSpec, data: Dataset, rows: Ints, is_gallery: Bools, seed: int
    ) -> None:
        self._run, self._rows, self._labels, self._last = run, rows, data.labels[rows], schedule.steps
        self._interval = schedule.validate_every * -(-schedule.steps // (schedule.validate_every * MAX_FRAMES))
        searchable = np.flatnonzero(~is_gallery)
        self._shown = searchable[choose_samples(self._labels[searchable], seed)]
        self._queries = choose_queries(self._labels[self._shown])
        self._gallery = np.flatnonzero(is_gallery) if is_gallery.any() else np.arange(len(rows))

    def __call__(self, step: int, embeddings: Singles) -> None:
        """Write the frame of a validation; a frame that cannot be written is logged, and training continues.

        Args:
            step: Training step.
            embeddings: Embeddings of all samples, (n, D).
        """
        if step % self._interval and step != self._last:
            return
        if not np.isfinite(embeddings).all():
            log.warning("no map of step %d: its embeddings are not finite", step)
            return
        try:
            validation_frames.write(self._run, step, self._frame(embeddings, self._previous(step)))
        except OSError as error:
            log.warning("the map of step %d was not written: %s", step, error)

    def _previous(self, step: int) -> Frame | None:
        earlier = [path for at, path in validation_frames.paths(self._run).items() if at < step]
        try:
            return validation_frames.read(earlier[-1]) if earlier else None
        except Unreadable as error:
            log.warning("the map of step %d may be rotated against the previous one: %s", step, error)
            return None

    def _frame(self, embeddings: Singles, previous: Frame | None) -> Frame:
        plane = principal_plane(embeddings[self._shown])
        if previous is not None and previous.points.shape == plane.shape:
            plane = align(plane, previous.points)
        near = self._neighbours(embeddings)
        reach = max(float(np.abs(plane).max()), 0.0 if previous is None else float(previous.reach))
        return Frame(
            plane.astype(np.float32),
            np.array(reach),
            self._rows[self._shown].astype(np.int32),
            self._labels[self._shown].astype(np.int32),
            self._queries.astype(np.int32),
            self._rows[near].astype(np.int32),
            self._labels[near].astype(np.int32),
        )

    def _neighbours(self, embeddings: Singles) -> Ints:
        """Return the rows (q, k) of the samples nearest to each query, without the query itself."""
        queries = self._shown[self._queries]
        searched = embeddings if len(self._gallery) == len(embeddings) else embeddings[self._gallery]
        # The expanded form is too inexact for close embeddings, and `nearest` takes four times as long.
        distances = torch.cdist(
            torch.from_numpy(embeddings[queries]),
            torch.from_numpy(searched),
            compute_mode="donot_use_mm_for_euclid_dist",
        )
        near = distances.topk(min(NEIGHBOURS + 1, len(searched)), largest=False).indices
        nearest = self._gallery[near.numpy()]
        others = [row[row != query][:NEIGHBOURS] for query, row in zip(queries, nearest, strict=True)]
        return np.stack(others)


def choose_samples(labels: Ints, seed: int) -> Ints:
    """Return up to MAX_POINTS rows (n,) of samples, evenly spread over at most MAX_CLASSES classes; sorted by class.

    Args:
        labels: Labels of the samples to choose from, (N,).
        seed: Seed of the choice.
    """
    random = np.random.default_rng(seed)
    classes = np.unique(labels)
    kept = random.permutation(classes)[:MAX_CLASSES]
    rows = random.permutation(np.flatnonzero(np.isin(labels, kept)))
    rows = rows[np.argsort(labels[rows], kind="stable")]
    _, starts, counts = np.unique(labels[rows], return_index=True, return_counts=True)
    position = np.arange(len(rows)) - np.repeat(starts, counts)  # of each sample among those of its class
    chosen: Ints = rows[np.sort(np.argsort(position, kind="stable")[:MAX_POINTS])]
    return chosen


def choose_queries(labels: Ints) -> Ints:
    """Return up to QUERIES rows (q,) of queries, spread over the classes.

    Args:
        labels: Labels of the samples to choose from, (n,), sorted.
    """
    _, starts, counts = np.unique(labels, return_index=True, return_counts=True)
    starts = starts[counts > 1] if (counts > 1).any() else starts  # a class of one sample has no correct neighbour
    if len(starts) < QUERIES:
        rows = np.linspace(0, len(labels) - 1, min(QUERIES, len(labels)))
    else:
        rows = starts[np.linspace(0, len(starts) - 1, QUERIES).astype(int)]
    return rows.astype(int)


def principal_plane(embeddings: Singles) -> Floats:
    """Return the positions (n, 2) of embeddings (n, D) on their two principal axes, with mean 0.

    `projection.pca` is not used, because importing scikit-learn takes as long as a training run on toy data.
    """
    centred = embeddings.astype(np.float64) - embeddings.mean(axis=0, dtype=np.float64)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, :-3:-1]
    plane = np.zeros((len(centred), 2))
    plane[:, : axes.shape[1]] = centred @ axes
    return plane


def align(points: Floats, reference: Singles) -> Floats:
    """Rotate and mirror points (n, 2) so that they match a reference (n, 2) in least squares (orthogonal Procrustes).

    Points and reference must have mean 0.
    """
    left, _, right = np.linalg.svd(points.T @ reference)
    aligned: Floats = points @ left @ right
    return aligned
