"""Imported embedding sets: runs that were not trained here, whose embeddings come from a file or an array.

An embedding set is a run directory without a checkpoint. Its spec has model.name = "identity", the folder `set` holds
the vectors, labels and other columns as imported (`dmlcore.data.embedding_sets.folder`), and `embeddings` holds the
vectors in the format of an evaluation, so every Inspection page shows it like a trained run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from dmlcore import data
from dmlcore.data import Dataset
from dmlcore.data.embedding_sets import folder as stored_sets
from dmlcore.data.embedding_sets.raw import read_npy
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.data.embedding_sets.source import source_file
from dmlcore.data.embedding_sets.stored import EmbeddingSet, load
from dmlcore.data.embedding_sets.table import VectorTable
from dmlcore.inspection import neighbours
from dmlcore.metrics import RetrievalScores
from dmlcore.presets import SPECS
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import IDENTITY, DataSpec, ModelSpec
from dmlcore.storage import arrays, run_directory
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import baselines, evaluation
from dmlcore.typing import Singles

READER = "embeddings"  # name of the data set reader
FOLDER = run_directory.SET
CHUNK = 8192  # rows processed at a time
BLOCK_BYTES = 2**22  # bytes of the vectors that are hashed at a time
# Largest number of multiplications for which all queries are scored during the import: half a minute on two cores.
MOST_OPERATIONS = 2.5e12
Report = Callable[[str], None]


def create(
    store: RunStore,
    table: VectorTable,
    roles: Roles,
    *,
    name: str = "",
    images: Path | None = None,
    copy_images: bool = False,
    image_roots: Sequence[Path] = (),
    normalize: bool = True,
    report: Report = lambda words: None,
) -> Run:
    """Store a table of embeddings as an embedding set and score it; the run appears only when it is complete.

    Args:
        store: Run store that receives the embedding set.
        table: Vectors (N, D) and further columns of N rows.
        roles: Names of the columns with labels, ids, image paths and splits.
        name: Name of the embedding set; by default, the name of the file.
        images: Folder that contains the images; None if there are none.
        copy_images: Copy the images into the embedding set instead of referring to them.
        image_roots: Folders below which absolute paths in the image column are accepted.
        normalize: Divide each vector by its Euclidean norm, so that distances order samples by cosine similarity.
        report: Function that receives progress messages.

    Returns:
        The finished run. Its test split consists of all N samples.

    Raises:
        DataError: The table is invalid; the message names the row, the column and the value. Nothing is stored.
        OSError: The disk is full; nothing is left behind.
    """
    name = name or Path(table.source).stem
    run_id = store.free_id(name, READER)
    place = store.root / run_id / FOLDER
    spec = RunSpec(
        name=name[:80],
        data=DataSpec(name=READER, root=str(place), split="none", validation="none", standardize=False),
        model=ModelSpec(name=IDENTITY, embedding_dim=min(table.vectors.shape[1], 4096), normalize=normalize),
    )

    def fill(building: Path) -> tuple[str, list[Row]]:
        inside = building / FOLDER
        inside.mkdir()
        report(f"storing {table.vectors.shape[0]:,} vectors")
        summary = stored_sets.write(
            inside, table, roles, images=images, name=name, copy=copy_images, image_roots=image_roots
        )
        dataset = data.load(READER, root=inside, split="none", validation="none")
        return _evaluate(building, dataset, summary.labelled, normalize, spec.ks, report)

    return store.add(spec, run_id, fill)


def store_in_run(
    run: Run, building: Path, table: VectorTable, roles: Roles, *, images: Path | None, copy_images: bool
) -> tuple[str, list[Row]]:
    """Store a table of embeddings as the embedding set of an existing run, and score it.

    The caller must hold the lock of the run.

    Args:
        run: Run with the spec of an embedding set, without stored embeddings.
        building: Temporary folder in the run directory; it must not exist, and is renamed when the set is complete.
        table: Vectors (N, D) and further columns.
        roles: Columns with labels, ids, image paths and splits.
        images: Folder that contains the images; None if there are none.
        copy_images: Copy the images into the embedding set instead of referring to them.

    Returns:
        Message of the final state, and metrics rows to append.

    Raises:
        DataError: The table is invalid; nothing is stored.
    """
    building.mkdir()
    summary = stored_sets.write(building, table, roles, images=images, copy=copy_images, name=run.spec.name)
    building.rename(run.path / FOLDER)
    dataset = data.load(READER, root=run.path / FOLDER, split="none", validation="none")
    return _evaluate(run.path, dataset, summary.labelled, run.spec.model.normalize, run.spec.ks, lambda words: None)


def of_run(run: Run) -> EmbeddingSet:
    """Return the stored vectors, labels and columns of an embedding set. Raises DataError."""
    return load(run.path / FOLDER)


def training_spec(run: Run) -> RunSpec:
    """Return the spec that trains a linear layer on an embedding set, the shipped spec `embeddings` for this set.

    The embedding dimension is reduced to that of the vectors. If the split column of the set divides the samples of
    each class, the network is tested on these samples, otherwise on unseen classes.
    """
    spec = RunSpec.from_toml((SPECS / f"{READER}.toml").read_text())
    split = of_run(run).split or spec.data.split
    dimension = min(spec.model.embedding_dim, run.spec.model.embedding_dim)
    return spec.model_copy(
        update={
            "name": run.spec.name,
            "data": spec.data.model_copy(update={"root": run.spec.data.root, "split": split, "validation": split}),
            "model": spec.model.model_copy(update={"embedding_dim": dimension}),
        }
    )


def _evaluate(
    building: Path, dataset: Dataset, labelled: bool, normalize: bool, ks: tuple[int, ...], report: Report
) -> tuple[str, list[Row]]:
    """Write the embeddings file with scores; return the message of the final state and the metrics rows."""
    count, dimensions = dataset.inputs.shape
    affordable = count * count * dimensions <= MOST_OPERATIONS
    vectors = building / FOLDER / stored_sets.VECTORS
    digest = _digest(vectors, normalize)
    path = run_directory.embeddings_path(building, digest)
    scores: RetrievalScores | None = None
    rows: list[Row] = []
    if affordable:
        embeddings = np.concatenate([*_chunks(vectors, normalize)])
        if labelled and len(dataset.class_names) > 1:
            report(f"scoring {count:,} queries")
            scores = evaluation.score(embeddings, dataset, "test", ks)
            rows.append(evaluation.row("inputs", 0, scores, weights=digest))
            rows.append(baselines.chance_row(dataset.labels, np.zeros(count, bool)))
        evaluation.save_embeddings(path, embeddings, dataset, "test", scores)
        report("searching the nearest neighbours")
        neighbours.keep(path)
    else:
        streamed = arrays.Streamed((count, dimensions), np.dtype(np.float32), _chunks(vectors, normalize))
        evaluation.save_embeddings(path, streamed, dataset, "test")
    if not rows:
        rows.append({"kind": "imported", "step": 0, "weights": digest})
    size = f"{count:,} samples" + (f" of {len(dataset.class_names):,} classes" if labelled else " without labels")
    result = "" if scores is None or scores.map_at_r is None else f"; MAP@R → {100 * scores.map_at_r:.1f} %"
    return size + result, rows


def _chunks(path: Path, normalize: bool) -> Iterator[Singles]:
    """Yield the stored vectors as float32 in chunks; they are read instead of mapped, which would count as memory."""
    for chunk in read_npy(source_file(path)).blocks(CHUNK):
        vectors = chunk.astype(np.float32)
        yield vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if normalize else vectors


def _digest(vectors: Path, normalize: bool) -> str:
    """Return a digest of the stored vectors, which names the embeddings file as the digest of the weights does else."""
    digest = hashlib.blake2b(repr(normalize).encode(), digest_size=32)
    with vectors.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
