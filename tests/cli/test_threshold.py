"""Command `python -m dmlcore threshold`, and the threshold in exported files."""

from __future__ import annotations

import json

import numpy as np
import pytest
import safetensors.torch

import dmlcore
from dmlcore.inspection import export, thresholds
from dmlcore.inspection.export import ExportError
from dmlcore.storage.runs import RunStore
from tests.cli.here import here
from tests.inspection.test_class_sides import embedding_set
from tests.inspection.threshold_runs import OPEN, QUICK
from tests.once import once
from tests.pages.conftest import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = once(tmp_path_factory, "threshold-digits", lambda root: make_run(root, *QUICK, *OPEN))
    return next(iter(RunStore(folder).list()))


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """Return a run without validation classes."""
    return make_run(tmp_path_factory.mktemp("closed"), *QUICK, "data.split=classes", "data.validation=none")


def threshold(run, *more):
    return here("threshold", run.id, "--runs", str(run.path.parent), *more)


def test_a_run_prints_threshold_intervals_and_expected_rates(run):
    found = thresholds.threshold(run, 0.05)
    done = threshold(run, "--fmr", "0.05")
    assert (done.returncode, done.stdout) == (0, f"{thresholds.describe(found)}\n"), done.stderr
    as_json = json.loads(threshold(run, "--fmr", "0.05", "--json").stdout)
    assert as_json == {"id": run.id, **json.loads(found.to_json())}


def test_baselines_are_printed_on_request(run):
    lines = threshold(run, "--baselines").stdout.splitlines()[-4:]
    assert [line.split(":")[0] for line in lines] == ["inputs", "untrained", "pca_whitened", "whitened"]
    as_json = json.loads(threshold(run, "--baselines", "--json").stdout)
    assert list(as_json["baselines"]) == ["inputs", "untrained", "pca_whitened", "whitened"]
    assert lines[0].startswith(
        f"inputs: Recommended threshold for 1 % false matches: {as_json['baselines']['inputs']['threshold']:.4f}"
    )


def test_imported_embeddings_are_divided_in_half(tmp_path):
    done = threshold(embedding_set(tmp_path, classes=20), "--fmr", "0.05")
    assert done.returncode == 0, done.stderr
    assert "first half" in done.stdout
    assert done.stdout.endswith(
        "Note: no column divides the classes: the threshold is chosen on the first half of them.\n"
    )


def test_a_run_without_validation_classes_is_refused_with_the_remedy(closed):
    done = threshold(closed)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: {closed.id} has no validation classes, on which a threshold could be chosen (data.validation is "
        "none). Train a run with data.split=classes and data.validation=classes.\n"
    )


def test_a_rate_below_one_pair_is_refused_with_the_remedy(run):
    done = threshold(run, "--fmr", "0.0000001")
    assert done.returncode == 1
    assert "choose a higher rate, or more samples" in done.stderr


def test_exported_weights_carry_the_threshold(run, tmp_path):
    to = tmp_path / "weights.safetensors"
    done = here("export", run.id, "--to", str(to), "--runs", str(run.path.parent))
    found = thresholds.threshold(run)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{to}\n", f"{found.sentence}\n")
    model = dmlcore.load(to)
    assert model.threshold == found
    assert dmlcore.load(run).threshold is None
    export.write(run, to, fmr=0.05)
    assert dmlcore.load(to).threshold == thresholds.threshold(run, 0.05)
    export.write(run, to, fmr=0)
    assert dmlcore.load(to).threshold is None
    tensors = safetensors.torch.load_file(to)
    with safetensors.safe_open(to, "pt") as file:
        about = file.metadata()
    to.write_bytes(safetensors.torch.save(tensors, {**about, "threshold": '{"threshold": 1e999}'}))
    with pytest.raises(ValueError, match=r"weights.safetensors cannot be loaded .*validation errors"):
        dmlcore.load(to)


def test_an_onnx_file_carries_the_threshold(run, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    to = export.write(run, tmp_path / "network.onnx", fmr=0.05)
    about = onnxruntime.InferenceSession(to, providers=["CPUExecutionProvider"]).get_modelmeta().custom_metadata_map
    assert thresholds.Recommendation.from_json(about["threshold"]) == thresholds.threshold(run, 0.05)


def test_export_without_a_threshold_reports_the_reason_and_refuses_a_given_rate(run, closed, tmp_path):
    to, reports = tmp_path / "weights.safetensors", []
    export.write(closed, to, report=reports.append)
    assert reports == [reports[0]]
    assert reports[0].startswith(f"the file has no threshold: {closed.id} has no validation classes")
    assert dmlcore.load(to).threshold is None
    with pytest.raises(ExportError, match=r"no threshold for --fmr 0.01: .* has no validation classes"):
        export.write(closed, to, fmr=0.01)
    with pytest.raises(ExportError, match="only a network carries a threshold"):
        export.write(run, tmp_path / "embeddings.npz", fmr=0.01)


def test_a_threshold_of_other_weights_is_not_exported(tmp_path):
    made = make_run(tmp_path, *QUICK, *OPEN)
    thresholds.threshold(made)
    source, reports = made.embeddings(), []
    for path in source.parent.glob(f"{source.stem}.*npz"):
        path.rename(path.with_name(path.name.replace(source.stem, "0" * 64)))
    export.write(made, tmp_path / "weights.safetensors", report=reports.append)
    assert "was trained further since its evaluation" in reports[0]
    assert np.isfinite(thresholds.threshold(made).threshold)  # of the evaluated weights
