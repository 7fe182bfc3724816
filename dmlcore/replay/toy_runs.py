"""Small training runs to watch live: their data sets and networks, 3-D views of their inputs, and published scores.

For vectors, all layers of a small network are trained. For images, the backbone is frozen and its feature maps are
stored, so that a step takes milliseconds. The backbone is SqueezeNet with ImageNet weights for photographs of birds,
and a few convolution blocks that are pretrained on demand for drawn glyphs.
"""

from __future__ import annotations

import io
import math
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dmlcore import data, losses
from dmlcore.data import Dataset
from dmlcore.data.files.cache_folder import create_once
from dmlcore.data.files.locate import cache_folder
from dmlcore.metrics import RetrievalScores, retrieval
from dmlcore.metrics.mapped import nearest_others
from dmlcore.models import pretrained
from dmlcore.published import karaman
from dmlcore.replay.recorded_training import LiveSpec, LiveTraining, SpecChange
from dmlcore.spec import RunSpec
from dmlcore.training import batches, build
from dmlcore.typing import Floats, Ints, Pixels, Singles

IMAGES = ("cub", "glyphs")
SETS = ("toy", "moons", "rings", "digits", *IMAGES)
SIDES = {"cub": 128, "glyphs": 28}  # pixels per side
NETWORKS = {"cub": "squeezenet1_0", "glyphs": "conv4"}
SPOT_FILE = "backbone.safetensors"
SPOT_STEPS = 150  # pretraining steps of the convolution blocks for glyphs
NEIGHBOURS = 5  # number of neighbours shown per query
QUERIES = 3
LOOK_EVERY = 30.0  # seconds between two checks for the CUB images and weights
SHOWN = 64  # side in pixels of an image in the strip of neighbours
HIDDEN = 32  # width of the hidden layer, as in the toy network of Karaman 2021
RECENT = 25  # number of batches over which a noisy curve is averaged
TABLE = "4.1"
COLUMNS = ("R@1", "R@8", "P@R", "MAP@R")
NOT_STATED = (
    "The thesis does not state the output size, the slope of the leaky ReLU, whether outputs are normalised, the "
    "learning rate of this table, nor when training stopped; its 12 classes are another draw than ours."
)


@dataclass(frozen=True)
class InputSpace:
    """Inputs as points (n, 3) for display, with axis names and a note on how the points were computed."""

    points: Singles
    axes: tuple[str, str, str]
    note: str


@dataclass(frozen=True)
class ThesisRow:
    """Row of Table 4.1 in Karaman 2021: label, loss (None for a baseline), hyper-parameters, and scores in percent."""

    label: str
    loss: str | None
    hyper: dict[str, float]
    scores: dict[str, float]


def toy_run(name: str, seed: int = 0, **sections: dict[str, Any]) -> RunSpec:
    """Return the spec of a training run on one of the data sets SETS.

    Runs on vectors use a linear layer to 32 units, a leaky ReLU and a linear layer to 2 outputs, trained with RMSprop
    on batches of 4 classes x 8 samples. This is the network of Karaman 2021, Sec. 4.1, but with two outputs so that the
    embeddings can be plotted. Runs on images use a frozen backbone, pooling and a linear layer.

    Args:
        name: One of SETS.
        seed: Seed for the generated images on which the backbone is pretrained; used only for "glyphs".
        sections: Values that override the defaults, by section of the spec.

    Raises:
        SpecError: If a value of the spec is invalid.
        DataError: If there is no such data set.
    """
    info = data.describe(name)
    if name in IMAGES:
        return _image_run(name, seed, sections)
    defaults: dict[str, Any] = {
        "data": {"name": name, "split": info.split, "validation": info.validation},
        "model": {"name": "mlp", "hidden": (HIDDEN,), "embedding_dim": 2, "normalize": False},
        "loss": {"name": "ranking", "parameters": {"m": 0.1}},
        "batch": {"classes": 4, "samples": 8},
        "optimiser": {"name": "rmsprop", "learning_rate": 0.005},
    }
    return RunSpec.parse({key: defaults.get(key, {}) | sections.get(key, {}) for key in (defaults | sections)})


@lru_cache(maxsize=16)
def dataset(name: str, seed: int) -> Dataset:
    """Load one of the data sets SETS with the split of its toy run; the result is cached and must not be modified."""
    if name in IMAGES:
        return data.load(name, image_size=SIDES[name], seed=seed)
    return build.load_data(toy_run(name).model_copy(update={"seed": seed}))


def list_sets() -> tuple[str, ...]:
    """Return the names in SETS that can be trained on this machine; "cub" needs its images and pretrained weights."""
    return _offered(int(time.monotonic() / LOOK_EVERY))


@lru_cache(maxsize=1)
def _offered(_: int) -> tuple[str, ...]:
    return tuple(name for name in SETS if name != "cub" or (data.available("cub") and _photograph_weights()))


@lru_cache(maxsize=4)
def prepare_data(name: str, seed: int) -> Dataset:
    """Load one of the data sets SETS; for images, add the feature maps of the frozen backbone, computed if missing."""
    made = dataset(name, seed)
    if name not in IMAGES:
        return made
    if name == "glyphs":
        _train_on_the_spot(name, seed)
    run = toy_run(name, seed).model_copy(update={"seed": seed})
    return LiveTraining(LiveSpec(run, per_class=1, splits=("test",)), made).dataset


def queries(training: LiveTraining) -> list[int]:
    """Return one sample from each of QUERIES classes to show as a query, as indices into the watched samples."""
    labels = training.dataset.labels[training.watched]
    classes = np.unique(labels)
    chosen = classes[np.linspace(0, len(classes) - 1, QUERIES + 2).round().astype(int)[1:-1]]
    return [int(np.flatnonzero(labels == label)[0]) for label in chosen]


def neighbours(embeddings: Singles, asked: list[int]) -> NDArray[np.uint16]:
    """Return indices (q, NEIGHBOURS) of the embeddings nearest to those at `asked`; ties go to the lower index."""
    return nearest_others(embeddings, np.array(asked), NEIGHBOURS)[1].astype(np.uint16)


def contact_sheet(dataset: Dataset, indices: Ints) -> tuple[Pixels, int]:
    """Return a contact sheet of the images as JPEG bytes (b,), and its number of images per row."""
    from PIL import Image

    assert dataset.image is not None
    columns = math.ceil(math.sqrt(len(indices)))
    sheet = Image.new("RGB", (columns * SHOWN, math.ceil(len(indices) / columns) * SHOWN))
    for place, index in enumerate(indices.tolist()):
        image = Image.fromarray(dataset.image(index)).convert("RGB").resize((SHOWN, SHOWN))
        sheet.paste(image, (place % columns * SHOWN, place // columns * SHOWN))
    file = io.BytesIO()
    sheet.save(file, "JPEG", quality=88)
    return np.frombuffer(file.getvalue(), np.uint8), columns


def _image_run(name: str, seed: int, sections: dict[str, dict[str, Any]]) -> RunSpec:
    start = str(_spot_folder(_spot_spec(name, seed)) / SPOT_FILE) if name == "glyphs" else _photograph_weights()
    defaults: dict[str, Any] = {
        "data": {"name": name, "image_size": SIDES[name], "augment": False},
        "model": {"name": NETWORKS[name], "start": start, "freeze": "backbone", "embedding_dim": 64},
        "loss": {"name": "multi_similarity"},
        "batch": {"classes": 16, "samples": 4},
        "optimiser": {"name": "adam", "learning_rate": 1e-3, "weight_decay": 1e-4},
    }
    return RunSpec.parse({key: defaults.get(key, {}) | sections.get(key, {}) for key in (defaults | sections)})


@lru_cache(maxsize=1)
def _photograph_weights() -> str | None:
    """Return the name of a SqueezeNet weight file trained on ImageNet that is on this machine, or None."""
    fits = (c for c in pretrained.CHECKPOINTS.values() if c.network == NETWORKS["cub"] and c.trained_on == "imagenet")
    return next((c.file for c in fits if pretrained.find(c)), None)


def _spot_spec(name: str, seed: int) -> RunSpec:
    """Return the spec that pretrains the small backbone for an image data set, before it is frozen."""
    return RunSpec(seed=seed, device="cpu").with_overrides(
        [
            f"data.name={name}",
            f"data.image_size={SIDES[name]}",
            "data.crop=affine",
            f"model.name={NETWORKS[name]}",
            "loss.name=multi_similarity",
            "batch.classes=16",
            "batch.samples=4",
            f"schedule.steps={SPOT_STEPS}",
        ]
    )


def _spot_folder(spec: RunSpec) -> Path:
    return cache_folder() / "live" / f"{spec.digest()[:20]}-1"


def _train_on_the_spot(name: str, seed: int) -> None:
    """Pretrain and store the frozen backbone for an image data set unless it exists, which takes about ten seconds."""
    spec = _spot_spec(name, seed)
    folder = _spot_folder(spec)

    def make(staging: Path) -> None:
        from safetensors.torch import save_file

        training = LiveTraining(LiveSpec(spec, per_class=1, splits=("test",)), dataset(name, seed))
        training.frame(SPOT_STEPS)
        backbone: Any = training.weights().backbone
        save_file({key: tensor.contiguous() for key, tensor in backbone.state_dict().items()}, staging / SPOT_FILE)

    create_once(folder.parent, folder.name.partition("-")[0], "1", SPOT_FILE, make, "the small network")


def input_space(dataset: Dataset, indices: Ints) -> InputSpace:
    """Return the inputs of the samples at `indices` as points in three dimensions.

    Vectors with up to three features are used directly; longer ones are projected onto principal components of the
    training split, in the units of the inputs. Images are represented by the averages of their stored feature maps.
    Raises ValueError for other inputs.
    """
    chosen = _vectors(dataset, indices)
    features = chosen.shape[1]
    if features <= 3:
        points = np.zeros((len(indices), 3), np.float32)
        points[:, :features] = chosen
        return InputSpace(points, ("x₁", "x₂", "x₃"), f"the {features} raw features")
    from sklearn.decomposition import PCA  # slow to import

    pca = PCA(3, svd_solver="full").fit(_vectors(dataset, dataset.splits["train"]))
    percent = 100 * pca.explained_variance_ratio_.sum()
    what = "averages of the frozen network's maps" if dataset.features else "features"
    note = f"three principal components of {features} {what}: {percent:.0f} % of the variance of the training split"
    return InputSpace(pca.transform(chosen).astype(np.float32), ("PC 1", "PC 2", "PC 3"), note)


def _vectors(dataset: Dataset, indices: Ints) -> Floats:
    if dataset.features is None:
        if len(dataset.inputs.shape) != 2:
            raise ValueError(f"inputs must be vectors (N, F), got shape {dataset.inputs.shape}")
        return np.asarray(dataset.inputs[indices], dtype=np.float64)
    chunks = np.split(indices, range(64, len(indices), 64))
    return np.concatenate([dataset.features[chunk].mean((2, 3), dtype=np.float64) for chunk in chunks])


def train_scores(training: LiveTraining, step: int, split: str = "train") -> RetrievalScores:
    """Return retrieval scores of the network after step `step`; each sample of a split is a query for the others."""
    before = tuple(change for change in training.spec.changes if change.step < step)
    stopped = replace(training.spec, changes=(*before, SpecChange(step)))
    with training.lock:
        training.frame(step)
        history = training.forked(stopped)
    model = history.weights().eval()
    indices = training.dataset.splits[split]
    with torch.inference_mode():
        embeddings = model(batches.to_device(training.dataset, indices, torch.device("cpu"))).numpy()
    return retrieval(embeddings, training.dataset.labels[indices], ks=(1, 8))


def input_scores(dataset: Dataset, split: str = "train") -> RetrievalScores:
    """Return retrieval scores on the inputs of a split without a network, as a baseline."""
    indices = dataset.splits[split]
    return retrieval(comparison_vectors(dataset, indices), dataset.labels[indices], ks=(1, 8))


def comparison_vectors(dataset: Dataset, indices: Ints) -> Singles:
    """Return the inputs of samples as vectors (n, F) for retrieval; for images, normalised averages of feature maps."""
    vectors = _vectors(dataset, indices).astype(np.float32)
    if dataset.features is not None:  # normalised, because the embeddings of the network are compared by angle too
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors


def in_columns(scores: RetrievalScores) -> dict[str, float | None]:
    """Return scores in percent, keyed by the column headings of Table 4.1 in Karaman 2021."""
    columns = (scores.recall_at[1], scores.recall_at[8], scores.r_precision, scores.map_at_r)
    return {name: None if v is None else 100 * v for name, v in zip(COLUMNS, columns, strict=True)}


def recent_mean(values: Floats, window: int = RECENT) -> Floats:
    """Return the moving mean of the last `window` values, ignoring NaN; positions with only NaN give NaN."""
    known = np.isfinite(values)
    sums, counts = (np.concatenate([[0.0], np.cumsum(x)]) for x in (np.where(known, values, 0.0), known))
    end = np.arange(1, len(values) + 1)
    begin = np.maximum(end - window, 0)
    with np.errstate(invalid="ignore"):
        mean: Floats = (sums[end] - sums[begin]) / (counts[end] - counts[begin])
    return mean


def published_scores() -> list[ThesisRow]:
    """Return the rows of Table 4.1 in Karaman 2021, with scores on the training data."""
    return [_published(row) for row in karaman.rows() if row.table == TABLE]


def matches(row: ThesisRow, run: RunSpec) -> bool:
    """Return True if a run uses the loss and the hyper-parameters of a row of Table 4.1."""
    if row.loss != run.loss.name:
        return False
    ours = losses.describe(run.loss.name).resolve(run.loss.parameters)
    theirs = losses.describe(run.loss.name).resolve(row.hyper)
    return all(_equal(ours[k], theirs[k]) for k in theirs)


def _equal(a: float | str, b: float | str) -> bool:
    return a == b if isinstance(a, str) or isinstance(b, str) else math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)


def _published(row: karaman.LossRow) -> ThesisRow:
    spaces = {"input_space": "input space", "initial_feature_space": "untrained network"}
    scores = {name: row.scores[name] for name in COLUMNS}
    if row.loss in spaces:
        return ThesisRow(spaces[row.loss], None, {}, scores)
    given = ", ".join(f"{k} = {v:g}" for k, v in row.hyper.items())
    return ThesisRow(f"{losses.describe(row.loss).title}, {given}", row.loss, row.hyper, scores)
