"""Evaluation of a network: embeddings and scores of a split, validation, final test, and the file of embeddings.

If a data set has a gallery split, the samples of the test split are the queries, and in all arrays they are followed by
the samples of the gallery.
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
from dmlcore.metrics.clustering import is_affordable
from dmlcore.metrics.scores import scores as by_name
from dmlcore.significance.gain import sum_by_group
from dmlcore.storage import arrays, atomic_files, checkpoint
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.run_directory import embeddings_path
from dmlcore.storage.runs import Run
from dmlcore.training import batches, coverings, final_analyses
from dmlcore.training.batches import rows_of
from dmlcore.training.neighbours import Conditioned
from dmlcore.training.state import TrainingState, embedder, keep_best, use_best
from dmlcore.typing import Array, Bools, Ints, Singles

MAX_SAMPLES = {"cpu": 256, "cuda": 1024}  # samples per forward pass
# Maximum number of input values per forward pass: 54 images of 227 pixels per side on a CPU, 434 on a GPU.
MAX_VALUES = {"cpu": 2**23, "cuda": 2**26}
RAW_SIDE = 32  # maximum side in pixels to which raw images are reduced before they are compared


def embed(
    model: Callable[[Tensor], Tensor],
    data: Dataset,
    split: str,
    device: torch.device,
    *,
    precision: Literal["float32", "bfloat16"] = "float32",
) -> Singles:
    """Return embeddings (n, D) float32 of the samples that `rows_of` returns, in that order.

    Args:
        model: A network, or any function of inputs on the device. A network is put into evaluation mode for the call;
            afterwards the previous mode of each module is restored.
        data: Data set that contains the split.
        split: Name of the split.
        device: Device to compute on.
        precision: "bfloat16" computes under autocast.
    """
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        return batches.embed(model, data, rows_of(data, split)[0], device, _chunk_size(data, device.type))


def validate(state: TrainingState) -> list[Row]:
    """Score the split `schedule.monitor_part`, keep the weights if they are the best yet, and return metrics rows."""
    schedule, progress = state.spec.schedule, state.progress
    split = schedule.monitor_part
    if not len(state.data.splits[split]):
        return []
    network = embedder(state)
    # first, because `_validation_rows` reads what the network keeps of the last set that it embedded
    tested = embed(network, state.data, "test", state.device) if schedule.validate_test else None
    embeddings = embed(network, state.data, split, state.device)
    rows: list[Row] = processes.on_first(lambda: _validation_rows(state, network, embeddings, tested))
    value = rows[-1][schedule.monitor]
    # The score is None if no class has two samples. If the pooling is not ready, it still averages, and the best
    # weights would belong to a different network than the one trained later.
    if value is None or not state.model.pooling_ready:
        return rows
    if progress.best_score is None or value > progress.best_score:
        keep_best(state)
        progress.best_score, progress.best_step, progress.stale, progress.plateau = value, progress.step, 0, 0
        return rows
    progress.stale += 1
    progress.plateau += 1
    # `schedule.plateau` validations without improvement: lower the learning rate
    if 0 < schedule.plateau <= progress.plateau:
        progress.plateau = 0
        progress.halvings += 1
    return rows


def _validation_rows(
    state: TrainingState, network: nn.Module, embeddings: Singles, tested: Singles | None
) -> list[Row]:
    """Return the metrics rows of a validation, ending with the row of retrieval scores.

    `embeddings` belong to the monitored split, and `network` must not have embedded another set since. `tested` are the
    embeddings of the test split if `schedule.validate_test` is set.
    """
    split, step = state.spec.schedule.monitor_part, state.progress.step
    if state.record_frame is not None:
        state.record_frame(step, embeddings)
    retrieval_scores = score(embeddings, state.data, split, (1,), state.device)
    rows = final_analyses.validation_rows(state.model, state.data, split, state.device, step)
    scores = {"map_at_r": retrieval_scores.map_at_r, "recall_at_1": retrieval_scores.recall_at[1]}
    split_field = {"part": split} if split != "validation" else {}
    clusters = cluster(embeddings, state.data, split, state.spec.seed) if state.spec.schedule.cluster else ""
    nmi = {"nmi": clusters.nmi} if isinstance(clusters, ClusteringScores) else {}
    others = {
        f"{name}_map_at_r": score(other, state.data, split, (1,), state.device).map_at_r
        for name, other in _other_embeddings(network).items()
    }
    if tested is not None:
        others["test_map_at_r"] = score(tested, state.data, "test", (1,), state.device).map_at_r
    own = {
        "kind": "validation",
        "step": step,
        **split_field,
        **scores,
        **nmi,
        **others,
        **_transductive_mark(network),
    }
    return [*rows, own]


def embed_test(state: TrainingState) -> tuple[nn.Module, Singles]:
    """Restore the best weights; return the module that computes embeddings, and its embeddings of the test split."""
    use_best(state)
    network = embedder(state)
    return network, embed(network, state.data, "test", state.device)


def final_test(run: Run, state: TrainingState) -> tuple[float | None, list[Row]]:
    """Score the test split with the best weights and write its embeddings; return MAP@R and all metrics rows."""
    network, embeddings = embed_test(state)
    with processes.alone():  # no collective operations, because the other processes have already finished
        return _tested(run, state, network, embeddings)


def _tested(run: Run, state: TrainingState, network: nn.Module, embeddings: Singles) -> tuple[float | None, list[Row]]:
    step = state.progress.best_step if state.best else state.progress.step
    digest = checkpoint.digest_of(network.state_dict())
    scores = score(embeddings, state.data, "test", state.spec.ks, state.device)
    write_embeddings(run, digest, embeddings, state.data, "test", scores)
    clusters = cluster(embeddings, state.data, "test", state.spec.seed)
    labels = query_labels(state.data, "test")
    rows = [row("trained", step, scores, clusters, labels=labels, weights=digest) | _transductive_mark(network)]
    for name, other in _other_embeddings(network).items():
        others = (
            score(other, state.data, "test", state.spec.ks, state.device),
            cluster(other, state.data, "test", state.spec.seed),
        )
        rows.append(row(name, step, *others) | ({"transductive": True} if name == "transductive" else {}))
    if not isinstance(network, Conditioned):  # these analyses are defined for unconditioned networks only
        rows += final_analyses.rows(state.model, state.data, "test", state.device, step)
    for method in state.methods:
        rows += method.after_test(state, embeddings, step)
    if state.spec.schedule.covering_every:
        rows.append(coverings.row(state, "tested_covering", step))
    return scores.map_at_r, rows


def raw_inputs(data: Dataset, split: str) -> Singles:
    """Return the raw inputs of a split as embeddings (n, F), a baseline that a network should exceed.

    Images are reduced to at most 32 x 32 pixels. Bags of token ids become vectors of counts per id, because the order
    of tokens has no meaning.
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

    indices, size = rows_of(data, split)[0], _chunk_size(data, "cpu")
    return np.concatenate([flat(chunk) for chunk in np.split(indices, range(size, len(indices), size))])


def score(
    embeddings: Singles, data: Dataset, split: str, ks: tuple[int, ...], device: torch.device | None = None
) -> RetrievalScores:
    """Compute retrieval scores of a split, from queries against its gallery or from each sample against all others.

    Args:
        embeddings: Result of `embed` or `raw_inputs` for this split, (n, D).
        data: Data set that contains the split.
        split: Name of the split.
        ks: Values of K for recall and precision at K.
        device: Device to search on.

    Raises:
        ValueError: If the number of embeddings differs from the number of samples in the split.
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
    """Cluster a split with its gallery; if k-means would take minutes, skip it and return a sentence that says why."""
    labels = data.labels[_checked(embeddings, data, split)[0]]
    samples, classes, dimensions = len(labels), len(np.unique(labels)), embeddings.shape[1]
    if not is_affordable(samples, classes, dimensions):
        return f"skipped: k-means of {samples:,} samples into {classes:,} clusters would take minutes"
    return clustering(embeddings, labels, seed)


def query_labels(data: Dataset, split: str) -> Ints:
    """Return the labels (Q,) of the queries of a split, in the order of `rows_of`."""
    indices, searched = rows_of(data, split)
    labels: Ints = data.labels[indices[~searched]]
    return labels


def row(
    subject: str,
    step: int,
    scores: RetrievalScores,
    clusters: ClusteringScores | str = "",
    *,
    labels: Ints | None = None,
    **extra: Any,
) -> Row:
    """Return a row of metrics.jsonl with test scores.

    Args:
        subject: Name of what was scored: "inputs", "untrained", "trained" or another kind of embeddings.
        step: Step at which the network had the scored weights.
        scores: Retrieval scores.
        clusters: Result of `cluster`, which is clustering scores or the reason why there are none.
        labels: Labels of the queries, (Q,), to store sums of the scores of each class, with which differences between
            rows can be tested.
        **extra: Further entries of the row.
    """
    of_queries = {"map_at_r": scores.per_query_average_precision, "recall_at_1": scores.per_query_recall_at_1}
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
        **({} if labels is None else {"by_class": sum_by_group(labels, of_queries)}),
        **extra,
    }


def write_embeddings(
    run: Run, digest: str, embeddings: Singles, data: Dataset, split: str, scores: RetrievalScores | None = None
) -> Path:
    """Write embeddings/<digest>.npz and return its path.

    The file has embeddings (n, D), labels (n,), indices (n,) into the data set, and content (n, 8), which identifies
    each sample by its contents, because generated data have the same indices and labels for every seed. If the split
    has a gallery, it also has is_gallery (n,). With scores it also has the scores of each class (C,): class_labels,
    class_queries, class_map_at_r, class_recall_at_1.
    """
    path = embeddings_path(run.path, digest)
    path.parent.mkdir(exist_ok=True)
    save_embeddings(path, embeddings, data, split, scores)
    return path


def save_embeddings(
    path: Path, embeddings: Singles | arrays.Streamed, data: Dataset, split: str, scores: RetrievalScores | None = None
) -> None:
    """Write embeddings, labels and, if given, scores of each class to `path`, with the arrays of `write_embeddings`."""
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


def _other_embeddings(network: nn.Module) -> dict[str, Singles]:
    """Return alternative embeddings of the last embedded set by name; {} unless `network` is `Conditioned`."""
    return network.other_embeddings() if isinstance(network, Conditioned) else {}


def _transductive_mark(network: nn.Module) -> dict[str, bool]:
    """Return {"transductive": True} if embeddings depend on the other scored samples, else {}; for a metrics row."""
    return {"transductive": True} if isinstance(network, Conditioned) and network.is_transductive else {}


def _checked(embeddings: Singles | arrays.Streamed, data: Dataset, split: str) -> tuple[Ints, Bools]:
    indices, searched = rows_of(data, split)
    if len(embeddings) != len(indices):
        also = " and its gallery" if searched.any() else ""
        raise ValueError(f"embeddings must be those of {split}{also}, {len(indices)} rows, got {len(embeddings)}")
    return indices, searched


def _chunk_size(data: Dataset, device: str) -> int:
    """Return the number of samples to embed in one forward pass, limited by MAX_VALUES.

    The number is the same in every run, because another number may change the rounding of the results.
    """
    each = max(1, int(np.prod(data.inputs.shape[1:])))
    return max(1, min(MAX_SAMPLES.get(device, MAX_SAMPLES["cuda"]), MAX_VALUES.get(device, MAX_VALUES["cuda"]) // each))
