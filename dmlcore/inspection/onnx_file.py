"""Export of a trained network as an ONNX file: preprocessing of pixel values, backbone, pooling and head in one graph.

The graph has the input `inputs` and the output `embeddings` (B, D), float32, for any batch size B. Inputs are those of
`trained_model.TrainedModel.forward`: images (B, C, H, W) uint8 in 0..255, vectors (B, F) float32, or token ids (B, L)
int64. Decoding, resizing and cropping of image files is not part of the graph. The metadata hold the spec, the format
of the inputs, and the threshold of the model, if it has one, as JSON.
"""

from __future__ import annotations

import copy
import json
import logging
import warnings
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import dmlcore
from dmlcore.inspection import onnx_operations
from dmlcore.inspection.trained_model import TrainedModel
from dmlcore.storage import atomic_files
from dmlcore.training.neighbours import Conditioned
from dmlcore.typing import Array

OPSET = 18
TOLERANCE = 1e-5  # largest difference of a value of an embedding, relative to the largest absolute value, at least 1
EXAMPLE, CHECKED = 2, 5  # batch sizes of the example that the graph is made from, and of the check
TOKENS = 7  # length of the bags of tokens in the example


class OnnxError(RuntimeError):
    """Error for a network that cannot be exported as ONNX; the message gives the reason."""


def export(model: TrainedModel, path: Path) -> float | None:
    """Write a trained network as an ONNX file, atomically, after comparing its embeddings with those of PyTorch.

    Args:
        model: Network to export, see `trained_model.load`.
        path: File to write.

    Returns:
        Largest difference between the embeddings of onnxruntime and of PyTorch, relative to the largest absolute value
        (at least 1); None if onnxruntime is not installed.

    Raises:
        OnnxError: A package is missing, an operation has no counterpart in ONNX, the embeddings depend on other samples
            of the data set, or they differ by more than TOLERANCE and more than 4 times the rounding error of PyTorch
            itself. No file is written.
    """
    if isinstance(model.network, Conditioned):
        raise OnnxError("the embeddings of this run depend on neighbours in its data set; export the embeddings")
    missing = [name for name in ("onnx", "onnxscript") if find_spec(name) is None]
    if missing:
        raise OnnxError(f"the packages {' and '.join(missing)} are missing; install: pip install onnx onnxscript")
    model = _copy(model)
    content = _graph(model)
    difference = _difference(model, content) if find_spec("onnxruntime") is not None else None
    if difference is not None and not (difference <= TOLERANCE or difference <= 4 * _rounding(model)):
        raise OnnxError(
            f"the embeddings of onnxruntime differ from those of PyTorch by {difference:.1e}, more than {TOLERANCE:g}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.replace(path, lambda file: file.write(content))
    return difference


def _copy(model: TrainedModel) -> TrainedModel:
    """Return a copy in evaluation mode on the CPU, with only operations that ONNX has.

    The flag `ready` of poolings with prototypes becomes a constant.
    """
    model = copy.deepcopy(model).cpu().eval().requires_grad_(False)
    for module in model.modules():
        if (ready := module._buffers.pop("ready", None)) is not None:
            module.ready = bool(ready)  # type: ignore[assignment]
    onnx_operations.replace(model)
    return model


def _example(model: TrainedModel, count: int, seed: int) -> Tensor:
    """Return random inputs for `count` samples."""
    random = np.random.default_rng(seed)
    shape = model.inputs.shape
    if model.kind == "images":
        return torch.from_numpy(random.integers(0, 256, (count, *shape), np.uint8))
    if model.kind == "vectors":
        return torch.from_numpy(random.normal(size=(count, *shape)).astype(np.float32))
    vocabulary = len(model.state_dict()[_tokens(model)])
    return torch.from_numpy(random.integers(0, vocabulary, (count, TOKENS + seed)))


def _tokens(model: TrainedModel) -> str:
    return next(name for name in model.state_dict() if name.endswith("tokens"))


def _graph(model: TrainedModel) -> bytes:
    batch = torch.export.Dim("batch", min=1)
    free = {0: batch} if model.kind != "bags of tokens" else {0: batch, 1: torch.export.Dim("length", min=1)}
    about = {
        "run": model.run,
        "step": str(model.step),
        "version": dmlcore.__version__,
        "inputs": json.dumps(asdict(model.inputs)),
        "spec": model.spec.to_json(),
        **({} if model.threshold is None else {"threshold": model.threshold.to_json()}),
    }
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # poolings store the weights of the last batch, which a graph does not
            program: Any = torch.onnx.export(
                model,
                (_example(model, EXAMPLE, 0),),
                input_names=["inputs"],
                output_names=["embeddings"],
                dynamic_shapes=(free,),
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # the exporter raises errors of many types
        raise OnnxError(f"{_described(model)} cannot be exported as ONNX: {_reason(error)}") from error
    finally:
        log.setLevel(level)
    program.model.metadata_props.update(about)
    content: bytes = program.model_proto.SerializeToString()
    return content


def _described(model: TrainedModel) -> str:
    pool = f" with the pooling {model.spec.pooling.name}" if model.kind != "vectors" else ""
    return f"the network {model.spec.model.name}{pool}"


def _reason(error: BaseException) -> str:
    """Return the first line of the error that caused `error` originally."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


@torch.inference_mode()
def _difference(model: TrainedModel, content: bytes) -> float:
    """Return the largest difference of embeddings of onnxruntime, see `export`, for a batch of another size."""
    import onnxruntime

    inputs = _example(model, CHECKED, 1)
    wanted = model(inputs).float().numpy()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (computed,) = session.run(["embeddings"], {"inputs": inputs.numpy()})
    if computed.shape != wanted.shape:
        raise OnnxError(f"onnxruntime returns embeddings of shape {computed.shape} instead of {wanted.shape}")
    return _relative(computed, wanted)


@torch.inference_mode()
def _rounding(model: TrainedModel) -> float:
    """Return the difference between embeddings in float32 and in float64, which converts `model` to float64.

    A pooling that solves ill-conditioned systems amplifies the rounding of its features.
    """
    inputs = _example(model, CHECKED, 1)
    single = model(inputs).double().numpy()
    exact = model.double()(inputs.double() if inputs.is_floating_point() else inputs).double().numpy()
    return _relative(single, exact)


def _relative(computed: Array, wanted: Array) -> float:
    return float(np.abs(computed - wanted).max() / max(1.0, float(np.abs(wanted).max())))
