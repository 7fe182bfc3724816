"""Trained network of a run as a plain `nn.Module` with its preprocessing, loaded from the run or an exported file.

Checkpoints and exported files are safetensors, so nothing is unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from PIL import Image
from torch import Tensor, nn

import dmlcore
from dmlcore import data
from dmlcore.data import DataError
from dmlcore.inspection import own_images
from dmlcore.inspection.own_images import InputFormat
from dmlcore.inspection.thresholds import Recommendation
from dmlcore.models import conditioned, networks
from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.sections import NO_METHOD
from dmlcore.storage import atomic_files, checkpoint, run_directory
from dmlcore.storage.runs import Run, RunError, open_run
from dmlcore.training import objective, starts
from dmlcore.training.build import classes_of
from dmlcore.training.methods.ensembles import Joined
from dmlcore.training.neighbours import Conditioned
from dmlcore.training.state import embedder, use_best
from dmlcore.typing import Array

if TYPE_CHECKING:
    from dmlcore.inspection.own_images import Source

FORMAT = "dml-lab.model.1"  # value of "dml-lab" in the metadata of an exported file
_NUMBERS = (int, float, list, tuple, np.ndarray, np.generic, Tensor)


class TrainedModel(nn.Module):
    """A trained network together with the preprocessing of its inputs, in evaluation mode.

    Args:
        network: The network; for an ensemble, together with the loss, which combines the embeddings of the learners.
        spec: Spec of the run that trained the network.
        inputs: Format of the network inputs.
        run: Id of the run.
        step: Training step of the weights.
        classes: Number of training classes.
        threshold: Cosine similarity from which two embeddings count as the same class, and its rates, as
            `dmlcore.inspection.threshold` returns them. In a model that `load` returns, it comes from an exported file;
            None if the file has none, or the model was loaded from a run.

    Example:
        >>> model = dmlcore.load("20261126-2340-digits-1a2b")  # doctest: +SKIP
        >>> model.embed(["a.jpg", "b.png"]).shape  # doctest: +SKIP torch.Size([2, 32])
    """

    def __init__(
        self,
        network: nn.Module,
        spec: RunSpec,
        inputs: InputFormat,
        *,
        run: str = "",
        step: int = 0,
        classes: int = 0,
        threshold: Recommendation | None = None,
    ) -> None:
        super().__init__()
        self.network, self.threshold = network, threshold
        self.spec, self.inputs, self.run, self.step, self.classes = spec, inputs, run, step, classes
        self.eval()

    @property
    def kind(self) -> str:
        """Kind of the inputs: "images", "vectors" or "bags of tokens"."""
        return networks.TAKES.get(self.spec.model.name, "images")

    def preprocess(self, samples: Source | Array | Tensor | Sequence[Any], *, invert: bool = False) -> Tensor:
        """Prepare samples as a batch of network inputs, in the same way as the data set of the run.

        Args:
            samples: For images, one or several of the following: a path, an open file, a PIL image, an array (H, W) or
                (H, W, 3) of uint8, of any size; or a batch (B, 3, H, W) or (B, 1, H, W) that is already prepared. For
                vectors, an array (B, F) or (F,); for bags of tokens an array of token ids (B, L) or (L,).
            invert: Invert images of dark ink on paper, for a network trained on light ink on black.

        Returns:
            Images (B, C, H, W) uint8, vectors (B, F) float32 or token ids (B, L) int64, on the CPU.

        Raises:
            DataError: An image cannot be decoded, or the network takes no images.
            ValueError: A sample has the wrong shape, or there are no samples.
        """
        given: Any = samples.detach().cpu().numpy() if isinstance(samples, Tensor) else samples
        is_array, are_several = isinstance(given, np.ndarray), isinstance(given, (list, tuple))
        if (is_array or are_several) and not len(given):
            raise ValueError("samples: needs at least one sample, got none")
        is_batch = self.kind == "images" and is_array and given.ndim == 4
        if is_batch and given.shape[1] in (1, 3):
            return torch.from_numpy(given.copy())
        if self.kind == "images" or not (is_array or isinstance(given[0] if are_several else given, _NUMBERS)):
            images = list(given) if are_several or is_batch else [given]
            made = own_images.as_inputs([_as_image(each) for each in images], self.inputs, invert=invert)
            return torch.from_numpy(made)
        values = np.array(given, np.float32 if self.kind == "vectors" else np.int64)
        values = values[None] if values.ndim == 1 else values
        self._check(values.shape)
        return torch.from_numpy(values)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the embeddings (B, D) of inputs.

        Args:
            inputs: Inputs on the device of the model: images (B, 3, H, W) RGB or (B, 1, H, W) grey with values in
                0..255, uint8 or floating point; vectors (B, F); token ids (B, L). See `preprocess`.

        Raises:
            ValueError: The inputs have the wrong shape.
        """
        self._check(tuple(inputs.shape))
        embeddings: Tensor = self.network(inputs)
        return embeddings

    @torch.inference_mode()
    def embed(
        self,
        samples: Source | Array | Tensor | Sequence[Any],
        *,
        invert: bool = False,
        batch_size: int = 64,
    ) -> Tensor:
        """Preprocess samples and return their embeddings (B, D), float32 on the CPU.

        Args:
            samples: See `preprocess`.
            invert: See `preprocess`.
            batch_size: Number of samples embedded at once.
        """
        inputs, device = self.preprocess(samples, invert=invert), next(self.parameters()).device
        was_training = self.training
        self.eval()
        try:
            return torch.cat([self(batch.to(device)).float().cpu() for batch in inputs.split(batch_size)])
        finally:
            self.train(was_training)

    def _check(self, shape: tuple[int, ...]) -> None:
        wanted = self.inputs.shape
        if self.kind == "images":
            if len(shape) != 4 or shape[1] not in (1, 3):
                raise ValueError(
                    f"images must have shape (B, 3, H, W) or (B, 1, H, W), best with {wanted[1]} x {wanted[2]} pixels "
                    f"as in training, got {shape}; use preprocess() for files and arrays of any size"
                )
        elif len(shape) != 2 or (self.kind == "vectors" and shape[1] != wanted[0]):
            length = wanted[0] if self.kind == "vectors" else "L"
            raise ValueError(f"{self.kind} must have shape (B, {length}), got {shape}")


def load(run: Run | str | Path, *, step: int | None = None, device: str | torch.device = "cpu") -> TrainedModel:
    """Return the trained network of a run, with its preprocessing, in evaluation mode.

    The weights are those with the best validation score if the run kept them, otherwise the last ones. The data set is
    not needed, unless embeddings depend on it (`conditioning`) or the network is an ensemble.

    Args:
        run: A run, its id in the run store ($DML_RUNS, else ./runs), its folder, or a file written by `dml export RUN
            --to weights.safetensors`.
        step: Step of a kept checkpoint, whose weights replace the best ones.
        device: Device to put the network on.

    Raises:
        RunError: There is no such run, or it has no checkpoint.
        CheckpointError: The checkpoint is damaged.
        DataError: The data set is needed and cannot be read.
        ValueError: The file was not written by `dml export`.
    """
    if not isinstance(run, Run):
        path = Path(run).expanduser()
        if path.is_file():
            return _from_file(path, step).to(device)
    return _from_run(open_run(run), step).to(device)


def export(model: TrainedModel, path: Path) -> None:
    """Write the weights of a model as a plain safetensors file, atomically.

    The names of the tensors are those of `model.state_dict()`; the metadata hold the spec, the format of the inputs and
    the version, so that `load(path)` rebuilds the model without its run, and its threshold if it has one.

    Raises:
        ValueError: The embeddings depend on neighbours in the data set, which cannot be stored in the file.
    """
    if isinstance(model.network, Conditioned):
        raise ValueError(
            "weights: the embeddings of this run depend on neighbours in its data set, so the weights alone "
            "are not enough; export the embeddings (.npz or .parquet)"
        )
    about = {
        "format": "pt",
        "dml-lab": FORMAT,
        "version": dmlcore.__version__,
        "run": model.run,
        "step": str(model.step),
        "classes": str(model.classes),
        "inputs": json.dumps(asdict(model.inputs)),
        "spec": model.spec.to_json(),
        **({} if model.threshold is None else {"threshold": model.threshold.to_json()}),
    }
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.replace(path, lambda file: file.write(safetensors.torch.save(tensors, about)))


def _from_run(run: Run, step: int | None) -> TrainedModel:
    if step is None:
        saved = checkpoint.load(run.path)
    else:
        kept = run_directory.kept_path(run.path, step)
        if not kept.is_file():
            known = ", ".join(map(str, run_directory.kept_checkpoints(run.path))) or "none"
            raise RunError(f"{run.id} has no kept checkpoint of step {step}; kept: {known}")
        saved = checkpoint.read(kept)
    if saved is None:
        raise RunError(f"{run.id} has no checkpoint yet, so there is no network to load; train it first")
    weights = checkpoint.select_prefix(saved.tensors, "best") if step is None else {}
    at = int(saved.facts["best_step"] if weights else saved.facts["step"])
    further = run.spec.method.name != NO_METHOD  # may score another network
    if further or saved.facts.get("conditioned") or objective.joins_learners(run.spec.loss.name):
        state = starts.load_for_evaluation(run, saved, device=torch.device("cpu"))
        if step is None:
            use_best(state)
        wanted, classes = InputFormat.of(state.data), classes_of(state.data)
        return TrainedModel(embedder(state), run.spec, wanted, run=run.id, step=at, classes=classes)
    weights = weights or checkpoint.select_prefix(saved.tensors, "model")
    wanted = _format(run.spec, weights)
    network = _build(run.spec, wanted, weights)
    network.load_state_dict(weights)
    return TrainedModel(network, run.spec, wanted, run=run.id, step=at)


def _from_file(path: Path, step: int | None) -> TrainedModel:
    if step is not None:
        raise ValueError(f"step: {path.name} holds the weights of one step; leave it out")
    try:
        with safetensors.safe_open(str(path), "pt") as file:
            about: Mapping[str, str] = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        if about.get("dml-lab") != FORMAT:
            raise ValueError("its metadata was not written by `dml export`")
        spec, given = RunSpec.from_json(about["spec"]), json.loads(about["inputs"])
        wanted = InputFormat(str(given["data"]), tuple(map(int, given["shape"])), bool(given["centre_cut"]))
        step, classes = int(about["step"]), int(about["classes"])
        threshold = Recommendation.from_json(about["threshold"]) if "threshold" in about else None
    except (safetensors.SafetensorError, OSError, KeyError, TypeError, ValueError, SpecError) as error:
        raise ValueError(
            f"{path.name} cannot be loaded ({error}); give a run, or a file written by `dml export RUN --to "
            "weights.safetensors`"
        ) from None
    weights = checkpoint.select_prefix(tensors, "network")
    joined = objective.joins_learners(spec.loss.name)
    network: nn.Module = _build(spec, wanted, checkpoint.select_prefix(weights, "model") if joined else weights)
    if joined:
        assert isinstance(network, networks.Network)
        network = Joined(network, objective.create(spec, classes, network).metric)
    model = TrainedModel(
        network, spec, wanted, run=about.get("run", ""), step=step, classes=classes, threshold=threshold
    )
    model.load_state_dict(tensors)
    return model


def _format(spec: RunSpec, weights: Mapping[str, Tensor]) -> InputFormat:
    """Return the input format of a run, derived from its spec and weights without reading the data set."""
    kind = networks.TAKES.get(spec.model.name, "images")
    if kind == "vectors":
        first = weights["hidden.0.weight" if spec.model.hidden else "linear.weight"]
        return InputFormat(spec.data.name, (first.shape[1],))
    if kind == "bags of tokens":
        return InputFormat(spec.data.name, (0,))  # of any length
    info = data.describe(spec.data.name)
    side = spec.data.image_size or info.image_size
    if side is None:
        raise DataError(f"{spec.data.name} has no images, and {spec.model.name} takes images; the spec is inconsistent")
    return InputFormat(spec.data.name, (info.channels, side, side), info.centre_cut)


def _build(spec: RunSpec, wanted: InputFormat, weights: Mapping[str, Tensor]) -> networks.Network:
    """Build the untrained network of a spec for inputs of format `wanted`; take the vocabulary size from `weights`."""
    vocabulary = len(weights["tokens"]) if spec.model.name == "tokens" else 0
    model = networks.build(spec.model, wanted.shape, seed=0, pool=spec.pooling, vocabulary=vocabulary)
    model.conditioning = conditioned.create(spec.conditioning, spec.model.embedding_dim, seed=0)
    if len(wanted.shape) == 3:
        nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)  # as in training
    return model


def _as_image(source: Any) -> Any:
    """Return an array (H, W) or (H, W, 3) of uint8 as a PIL image, anything else unchanged."""
    if isinstance(source, Tensor):
        source = source.detach().cpu().numpy()
    if not isinstance(source, np.ndarray):
        return source
    if source.dtype != np.uint8 or source.ndim not in (2, 3) or (source.ndim == 3 and source.shape[2] != 3):
        raise ValueError(
            f"images as arrays must be (H, W) or (H, W, 3) of uint8, or a batch (B, 3, H, W), got {source.dtype} of "
            f"shape {source.shape}"
        )
    return Image.fromarray(source).convert("RGB")
