"""What a run has learned: embeddings and scores of a split, validation and test, the embeddings file.

Where a data set has a gallery of its own, the samples of "test" are the queries, and its rows follow theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmlcore import processes
from dmlcore.data import Dataset
from dmlcore.data.identities import identities
from dmlcore.data.synthetic.tokens import counts
from dmlcore.metrics import ClusteringScores, RetrievalScores, clustering, per_class, retrieval
from dmlcore.metrics.clustering import affordable
from dmlcore.metrics.scores import scores as by_name
from dmlcore.storage import arrays, atomic_files, checkpoint
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.run_directory import embeddings_path
from dmlcore.storage.runs import Run
from dmlcore.training import batches, coverings, final_analyses, fixed_neighbours
from dmlcore.training.neighbours import Conditioned
from dmlcore.training.state import TrainingState, embedder, keep_best, use_best
from dmlcore.typing import Array, Bools, Ints, Singles

MOST = {"cpu": 256, "cuda": 1024}  # samples embedded at once,
NUMBERS = {"cpu": 2**23, "cuda": 2**26}  # and numbers of their inputs: 54 images of 227 pixels, 434 on a GPU
RAW_SIDE = 32  # raw images are compared at this side at most


def rows_of(data: Dataset, split: str) -> tuple[Ints, Bools]:
    """Samples (n,) that are embedded to score a split, and whether each is only searched (n,)."""
    indices = data.splits[split]
    gallery = data.splits.get("gallery", indices[:0]) if split == "test" else indices[:0]
    return np.concatenate([indices, gallery]), np.arange(len(indices) + len(gallery)) >= len(indices)


def embed(
    model: Callable[[Tensor], Tensor],
    data: Dataset,
    split: str,
    device: torch.device,
    *,
    precision: Literal["float32", "bfloat16"] = "float32",
) -> Singles:
    """Embeddings (n, D) float32 of the samples of `rows_of`, in their order.

    model: a network, or any function of inputs on the device; a network is in evaluation mode meanwhile, and each of
    its modules as it was afterwards. precision: bfloat16 lets the network compute in it, under autocast.
    """
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        return batches.embed(model, data, rows_of(data, split)[0], device, _at_once(data, device.type))


def validate(state: TrainingState) -> list[Row]:
    """Score the monitored split, if there is one, and keep the weights if they are the best so far; return the rows."""
    schedule, progress = state.spec.schedule, state.progress
    split = schedule.monitor_part
    if not len(state.data.splits[split]):
        return []
    network = embedder(state)
    embeddings = embed(network, state.data, split, state.device)
    rows: list[Row] = processes.first(lambda: _validation_rows(state, network, embeddings))
    value = rows[-1][schedule.monitor]
    # None: no class has two samples. Not ready: still average pooling, whose best would be another network's.
    if value is None or not state.model.pooling_ready:
        return rows
    if progress.best_score is None or value > progress.best_score:
        keep_best(state)
        progress.best_score, progress.best_step, progress.stale, progress.plateau = value, progress.step, 0, 0
        return rows
    progress.stale += 1
    progress.plateau += 1
    if 0 < schedule.plateau <= progress.plateau:  # it has lasted as long as the spec allows: lower the learning rate
        progress.plateau = 0
        progress.halvings += 1
    return rows


def _validation_rows(state: TrainingState, network: nn.Module, embeddings: Singles) -> list[Row]:
    """What a validation says of what a network has just embedded; its scores are the last row."""
    split, step = state.spec.schedule.monitor_part, state.progress.step
    retrieval_scores = score(embeddings, state.data, split, (1,), state.device)
    rows = final_analyses.of_validation(state.model, state.data, split, state.device, step)
    scores = {"map_at_r": retrieval_scores.map_at_r, "recall_at_1": retrieval_scores.recall_at[1]}
    split_field = {"part": split} if split != "validation" else {}
    clusters = cluster(embeddings, state.data, split, state.spec.seed) if state.spec.schedule.cluster else ""
    nmi = {"nmi": clusters.nmi} if isinstance(clusters, ClusteringScores) else {}
    beside = {
        f"{name}_map_at_r": score(other, state.data, split, (1,), state.device).map_at_r
        for name, other in _beside(network).items()
    }
    own = {"kind": "validation", "step": step, **split_field, **scores, **nmi, **beside, **_mark(network)}
    return [*rows, own]


def embed_test(state: TrainingState) -> tuple[nn.Module, Singles]:
    """What embeds with the best weights, which the state goes back to, and what it makes of the test split."""
    use_best(state)
    network = embedder(state)
    return network, embed(network, state.data, "test", state.device)


def final_test(run: Run, state: TrainingState) -> tuple[float | None, list[Row]]:
    """Score the test split with the best weights, write its embeddings; return MAP@R and the rows."""
    network, embeddings = embed_test(state)
    with processes.alone():  # the others have gone
        return _tested(run, state, network, embeddings)


def _tested(run: Run, state: TrainingState, network: nn.Module, embeddings: Singles) -> tuple[float | None, list[Row]]:
    step = state.progress.best_step if state.best else state.progress.step
    digest = checkpoint.digest_of(network.state_dict())
    scores = score(embeddings, state.data, "test", state.spec.ks, state.device)
    write_embeddings(run, digest, embeddings, state.data, "test", scores)
    clusters = cluster(embeddings, state.data, "test", state.spec.seed)
    rows = [row("trained", step, scores, clusters, weights=digest) | _mark(network)]
    for name, other in _beside(network).items():
        others = (
            score(other, state.data, "test", state.spec.ks, state.device),
            cluster(other, state.data, "test", state.spec.seed),
        )
        rows.append(row(name, step, *others) | ({"transductive": True} if name == "transductive" else {}))
    if not state.progress.conditioned:  # these are of the network alone
        rows += final_analyses.rows(state.model, state.data, "test", state.device, step)
    rows += fixed_neighbours.scored(state, embeddings, *rows_of(state.data, "test"), step)
    if state.spec.schedule.covering_every:
        rows.append(coverings.row(state, "tested_covering", step))
    return scores.map_at_r, rows


def raw_inputs(data: Dataset, split: str) -> Singles:
    """The inputs themselves as embeddings (n, F): what a network has to beat.

    Images at 32 x 32 at most; bags of token ids as the counts of each id, which do not depend on the order.
    """
    is_bag = len(data.inputs.shape) == 2 and data.inputs.dtype.kind in "iu"
    tokens = int(data.inputs[:].max()) + 1 if is_bag else 0

    def flat(chunk: Ints) -> Singles:
        if is_bag:
            return counts(data.inputs[chunk], tokens).astype(np.float32)
        inputs = torch.from_numpy(np.ascontiguousarray(data.inputs[chunk])).float()
        if inputs.ndim == 4 and max(inputs.shape[2:]) > RAW_SIDE:
            inputs = F.adaptive_avg_pool2d(inputs, RAW_SIDE)
        return inputs.flatten(1).numpy()

    indices, size = rows_of(data, split)[0], _at_once(data, "cpu")
    return np.concatenate([flat(chunk) for chunk in np.split(indices, range(size, len(indices), size))])


def score(
    embeddings: Singles, data: Dataset, split: str, ks: tuple[int, ...], device: torch.device | None = None
) -> RetrievalScores:
    """Retrieval within a split, every sample a query against the others; in a gallery where the split has one.

    embeddings: of `embed` or `raw_inputs`; device: where to search. Raises ValueError if they are of others.
    """
    indices, searched = _checked(embeddings, data, split)
    labels = data.labels[indices]
    if not searched.any():
        return retrieval(embeddings, labels, ks=ks, device=device)
    queries = len(searched) - int(searched.sum())
    return retrieval(
        embeddings[:queries],
        labels[:queries],
        gallery=embeddings[queries:],
        gallery_labels=labels[queries:],
        ks=ks,
        device=device,
    )


def cluster(embeddings: Singles, data: Dataset, split: str, seed: int) -> ClusteringScores | str:
    """Clustering of a split, its gallery included, or the reason in words where k-means would take minutes."""
    labels = data.labels[_checked(embeddings, data, split)[0]]
    samples, classes, dimensions = len(labels), len(np.unique(labels)), embeddings.shape[1]
    if not affordable(samples, classes, dimensions):
        return f"left out: k-means of {samples:,} samples into {classes:,} clusters would take minutes"
    return clustering(embeddings, labels, seed)


def row(subject: str, step: int, scores: RetrievalScores, clusters: ClusteringScores | str = "", **extra: Any) -> Row:
    """The line of metrics.jsonl for test scores of "inputs", "untrained" or "trained".

    clusters: what `cluster` found: scores, or why there are none.
    """
    return {
        "kind": "scores",
        "of": subject,
        "step": step,
        **by_name(scores, clusters if isinstance(clusters, ClusteringScores) else None),
        "recall_at": {str(k): value for k, value in scores.recall_at.items()},
        "precision_at": {str(k): value for k, value in scores.precision_at.items()},
        "recall_fraction_at": {str(k): value for k, value in scores.recall_fraction_at.items()},
        **({"no_clustering": clusters} if isinstance(clusters, str) and clusters else {}),
        "queries": scores.queries,
        "skipped": scores.skipped,
        **extra,
    }


def write_embeddings(
    run: Run, digest: str, embeddings: Singles, data: Dataset, split: str, scores: RetrievalScores | None = None
) -> Path:
    """Write embeddings/<digest>.npz: embeddings (n, D), labels (n,), indices (n,) into the data set, content (n, 8).

    content: `identities` of the samples, as data that are drawn have the same indices and labels for every seed.
    Where the split has a gallery also is_gallery (n,). With scores also those of each class (C,): class_labels,
    class_queries, class_map_at_r, class_recall_at_1.
    """
    path = embeddings_path(run.path, digest)
    path.parent.mkdir(exist_ok=True)
    save_embeddings(path, embeddings, data, split, scores)
    return path


def save_embeddings(
    path: Path, embeddings: Singles, data: Dataset, split: str, scores: RetrievalScores | None = None
) -> None:
    """Write the arrays of `write_embeddings` to this file."""
    indices, searched = _checked(embeddings, data, split)
    labels = data.labels[indices]
    more: dict[str, Array] = {"content": identities(data, indices)}
    more |= {"is_gallery": searched} if searched.any() else {}
    if scores is not None:
        each = per_class(scores, labels[~searched])
        more |= {"class_labels": each.labels, "class_queries": each.queries}
        more |= {
            "class_map_at_r": each.map_at_r.astype(np.float32),
            "class_recall_at_1": each.recall_at_1.astype(np.float32),
        }
    atomic_files.replace(
        path,
        lambda file: arrays.save(file, embeddings=embeddings, labels=labels, indices=indices, **more),
    )


def _beside(network: nn.Module) -> dict[str, Singles]:
    """The set that was just embedded by other means, where neighbours take part: by name, as of a row of scores."""
    return network.beside() if isinstance(network, Conditioned) else {}


def _mark(network: nn.Module) -> dict[str, bool]:
    """What a row says of scores whose embeddings depend on what is scored with them."""
    return {"transductive": True} if isinstance(network, Conditioned) and network.is_transductive else {}


def _checked(embeddings: Singles, data: Dataset, split: str) -> tuple[Ints, Bools]:
    indices, searched = rows_of(data, split)
    if len(embeddings) != len(indices):
        also = " and its gallery" if searched.any() else ""
        raise ValueError(f"embeddings must be those of {split}{also}, {len(indices)} rows, got {len(embeddings)}")
    return indices, searched


def _at_once(data: Dataset, device: str) -> int:
    """Samples of bounded memory; the same number on every run, as another one may round differently."""
    each = max(1, int(np.prod(data.inputs.shape[1:])))
    return max(1, min(MOST.get(device, MOST["cuda"]), NUMBERS.get(device, NUMBERS["cuda"]) // each))
