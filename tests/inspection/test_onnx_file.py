"""Exported ONNX files agree with PyTorch for batches of any size."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dmlcore.data.embedding_sets import files
from dmlcore.data.embedding_sets.roles import Roles
from dmlcore.experiments import embedding_sets
from dmlcore.inspection import export, onnx_file, onnx_operations, trained_model
from dmlcore.inspection.export import ExportError
from dmlcore.inspection.onnx_file import OnnxError
from dmlcore.inspection.own_images import InputFormat
from dmlcore.inspection.trained_model import TrainedModel
from dmlcore.models import networks
from dmlcore.spec import ModelSpec, PoolingSpec, RunSpec
from dmlcore.storage.runs import RunStore
from tests.cli.here import here
from tests.pages.conftest import make_run

QUICK = ("schedule.steps=2", "schedule.validate_every=1", "batch.classes=2", "batch.samples=3")
NEEDS = ("onnx", "onnxscript", "onnxruntime")
needs_onnx = pytest.mark.skipif(
    not all(map(onnx_file.find_spec, NEEDS)), reason=f"needs {', '.join(NEEDS)}: pip install {' '.join(NEEDS)}"
)


def build(name: str, shape: tuple[int, ...], pool: str = "gap") -> TrainedModel:
    """Return an untrained network; poolings with prototypes use them."""
    spec = RunSpec(model=ModelSpec(name=name, embedding_dim=8), pooling=PoolingSpec(name=pool))
    network = networks.build(spec.model, shape, seed=0, pool=spec.pooling, vocabulary=16 if name == "tokens" else 0)
    for key, buffer in network.named_buffers():
        if key.endswith("ready"):
            buffer.fill_(True)
    return TrainedModel(network, spec, InputFormat("digits", shape), run="made", step=3)


def embed(path, inputs: np.ndarray) -> np.ndarray:
    import onnxruntime

    (embeddings,) = onnxruntime.InferenceSession(path).run(None, {"inputs": inputs})
    return embeddings


@needs_onnx
@pytest.mark.parametrize(
    ("name", "shape", "pool"),
    [
        ("mlp", (64,), "gap"),
        ("tokens", (9,), "gap"),
        ("resnet20", (1, 32, 32), "gem"),
        ("conv4_32", (3, 32, 32), "gsp"),
        ("conv4_32", (3, 32, 32), "otp"),
        ("conv4_32", (3, 32, 32), "gap_gmp"),
        ("conv4_32", (3, 16, 16), "gemax"),
        ("conv4_32", (3, 16, 16), "solar"),
        ("efficientnet_lite0", (3, 64, 64), "gap"),
    ],
)
def test_onnxruntime_finds_the_embeddings_of_pytorch(name, shape, pool, tmp_path):
    model, path = build(name, shape, pool), tmp_path / "network.onnx"
    assert onnx_file.export(model, path) < 1e-5
    for count in (1, 3, 17):
        inputs = onnx_file._example(model, count, count)
        with torch.inference_mode():
            assert embed(path, inputs.numpy()) == pytest.approx(model(inputs).numpy(), abs=1e-5)
    if pool == "gsp":
        assert isinstance(model.network.pool.ready, torch.Tensor), "the model itself is unchanged"


@needs_onnx
def test_a_run_is_exported_with_the_facts_about_it(tmp_path):
    import onnx

    run = make_run(tmp_path / "runs", *QUICK)
    path = tmp_path / "out" / "network.onnx"
    done = here("export", run.id, "--onnx", str(path), "--runs", str(tmp_path / "runs"))
    assert done.stdout == f"{path}\n", done.stderr
    assert "checked with onnxruntime" in done.stderr
    vectors = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    assert embed(path, vectors) == pytest.approx(trained_model.load(run).embed(vectors).numpy(), abs=1e-5)
    about = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert (about["run"], about["spec"]) == (run.id, run.spec.to_json())


@needs_onnx
def test_a_pooling_that_amplifies_rounding_is_compared_with_float64(tmp_path, monkeypatch):
    model = build("resnet20", (1, 32, 32), "gemax")  # differs by 2e-5, PyTorch in float32 from float64 by 1.5e-5
    assert onnx_file.export(model, tmp_path / "network.onnx") < 1e-4
    monkeypatch.setattr(onnx_file, "_rounding", lambda model: 0.0)
    with pytest.raises(OnnxError, match="differ from those of PyTorch"):
        onnx_file.export(model, tmp_path / "other.onnx")


@needs_onnx
def test_what_onnx_cannot_express_is_refused_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_operations, "replace", lambda network: None)
    with pytest.raises(OnnxError, match="conv4_32 with the pooling gemax cannot be exported as ONNX"):
        onnx_file.export(build("conv4_32", (3, 32, 32), "gemax"), tmp_path / "network.onnx")
    assert [*tmp_path.iterdir()] == []


@needs_onnx
def test_a_file_that_differs_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_file, "TOLERANCE", -1.0)
    monkeypatch.setattr(onnx_file, "_rounding", lambda model: -1.0)
    with pytest.raises(OnnxError, match="differ from those of PyTorch"):
        onnx_file.export(build("mlp", (64,)), tmp_path / "network.onnx")
    assert [*tmp_path.iterdir()] == []


def test_missing_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_file, "find_spec", lambda name: None)
    with pytest.raises(OnnxError, match="pip install onnx onnxscript"):
        onnx_file.export(build("mlp", (64,)), tmp_path / "network.onnx")


def test_an_embedding_set_has_no_network(tmp_path):
    table = files.from_arrays(np.eye(4, dtype=np.float32))
    run = embedding_sets.create(RunStore(tmp_path), table, Roles())
    with pytest.raises(ExportError, match="is an embedding set and has no network"):
        export.write(run, tmp_path / "network.onnx")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give one file"),
        (("--to", "a.npz", "--onnx", "a.onnx"), "give one file"),
        (("--onnx", "a.npz"), "ends in .onnx"),
    ],
)
def test_the_command_takes_one_file(options, message, tmp_path):
    done = here("export", "any-run", *options, "--runs", str(tmp_path))
    assert done.returncode == 1
    assert message in done.stderr
