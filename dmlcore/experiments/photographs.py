"""Embedding sets of photographs, which a pretrained network computes without any training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Protocol

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field

from dmlcore.data.dataset import DataError, LazySequence
from dmlcore.data.embedding_sets import photographs
from dmlcore.data.embedding_sets.files import from_arrays
from dmlcore.data.embedding_sets.photographs import Photographs
from dmlcore.data.printable import printable
from dmlcore.experiments import embedding_sets
from dmlcore.models.pooled_features import PooledFeatures
from dmlcore.models.pretrained import WeightsError
from dmlcore.storage.runs import Run, RunStore
from dmlcore.typing import Singles

NETWORK = "efficientnet_lite0"
NAMED = 3  # maximum number of unreadable photographs that a note names
MAX_NOTE = 2000  # characters
ACTIVITY = "embedding the photographs"

Name = Annotated[str, Field(max_length=4096)]


class ProgressReport(Protocol):
    """Callback for progress: activity, number of photographs done, total number, and fields of the state to set."""

    def __call__(self, message: str, done: float = 0, total: float | None = None, **more: str) -> None: ...


class EmbedRequest(BaseModel):
    """Photographs, network and options of an embedding set to compute.

    Attributes:
        photographs: Folder or .zip file of the photographs.
        network: Name of a network with published ImageNet weights.
        labels: File with one row per photograph; None takes labels from class folders, if there are any.
        label: Column of `labels` with the labels; None finds it by name.
        name: Name of the embedding set; "" for the names of the folder and the network.
        copy_images: Copy the photographs of a folder into the set; those of a .zip file are always copied.
        image_roots: Folders below which absolute paths in `labels` are accepted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    photographs: Name
    network: Name = NETWORK
    labels: Name | None = None
    label: Name | None = None
    name: Name = ""
    copy_images: bool = False
    image_roots: tuple[Name, ...] = ()


def embed(
    store: RunStore, request: EmbedRequest, folder: Path, scratch: Path, *, copy_images: bool, report: ProgressReport
) -> Run:
    """Compute and store the embedding set of a folder of photographs.

    Photographs that cannot be decoded are left out and named in a note of the set. The embeddings are average-pooled
    feature maps of the network, compared by cosine similarity.

    Args:
        store: Run store that receives the set.
        request: Network, labels and name; `request.photographs` is used for the name only.
        folder: Folder of the photographs.
        scratch: Folder that receives the vectors while they are computed.
        copy_images: Copy the photographs into the set instead of referring to them.
        report: Callback that receives the progress.

    Returns:
        Run with the embedding set.

    Raises:
        DataError: The folder, the table of labels or the weights are unusable, or no photograph can be decoded.
        OSError: The disk is full; nothing is left behind.
    """
    report("listing the photographs")
    if request.labels is None:
        listed = photographs.list_folder(folder)
    else:
        roots = [Path(root) for root in request.image_roots]
        listed = photographs.list_table(folder, Path(request.labels), request.label, roots)
    try:
        network = PooledFeatures(request.network, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    except WeightsError as error:
        raise DataError(str(error)) from error
    vectors, unreadable = _compute(network, listed, scratch, report)
    kept = np.setdiff1d(np.arange(len(listed.paths)), [row for row, _ in unreadable])
    notes = (*listed.notes, *_note(unreadable, listed))
    if notes:
        report(text := printable("; ".join(notes), MAX_NOTE), note=text)
    given = Path(request.photographs)
    source = (given.stem if given.suffix else folder.absolute().name) or "photographs"
    table = from_arrays(vectors, listed.columns.take(kept), source)
    return embedding_sets.create(
        store,
        table.with_notes((f"embedded with {request.network}, weights {network.weights.file}", *notes)),
        listed.roles,
        name=request.name or f"{source} {request.network}",
        images=listed.folder,
        copy_images=copy_images,
        report=report,
    )


def _compute(
    network: PooledFeatures, listed: Photographs, scratch: Path, report: ProgressReport
) -> tuple[Singles, list[tuple[int, DataError]]]:
    """Return the features (n, D) of the readable photographs, mapped from a file, and rows and errors of the others."""
    total, done, kept = len(listed.paths), 0, 0
    unreadable: list[tuple[int, DataError]] = []
    features: Singles = np.lib.format.open_memmap(
        scratch / "vectors.npy", mode="w+", dtype=np.float32, shape=(total, network.dimensions)
    )
    report(ACTIVITY, 0, total)
    for batch in network.batches(LazySequence(listed.paths, listed.folder.joinpath)):
        for row, vector in enumerate(batch, start=done):
            if isinstance(vector, DataError):
                unreadable.append((row, vector))
            else:
                features[kept] = vector
                kept += 1
        done += len(batch)
        report(ACTIVITY, done, total)
    if not kept:
        raise DataError(f"none of the {total:,} photographs can be read; the first: {unreadable[0][1]}")
    return features[:kept], unreadable


def _note(unreadable: Sequence[tuple[int, DataError]], listed: Photographs) -> tuple[str, ...]:
    """Return a note with the number and the first of the photographs that are left out; () if there are none."""
    if not unreadable:
        return ()
    named = [str(error).replace(f"{listed.folder}/", "") for _, error in unreadable[:NAMED]]
    was, it = ("was", "it") if len(unreadable) == 1 else ("were", "they")
    count = f"{len(unreadable):,} of {len(listed.paths):,} photographs"
    more = "; …" if len(unreadable) > NAMED else ""
    return (f"{count} {was} left out, because {it} cannot be read: {'; '.join(named)}{more}",)
