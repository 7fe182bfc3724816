"""A loaded model embeds as the evaluation did, without the data set; its exported file is plain safetensors."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image

import dmlcore
from dmlcore.data import DataError
from dmlcore.inspection import export
from dmlcore.inspection.export import ExportError
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.training import build
from tests.cli.here import here
from tests.pages.conftest import make_run

QUICK = ("schedule.steps=2", "schedule.validate_every=1", "batch.classes=2", "batch.samples=3")


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Return a run on a folder of photographs that is deleted afterwards."""
    root = tmp_path_factory.mktemp("photographs")
    random = np.random.default_rng(0)
    for c in "abcd":
        (root / "data" / c).mkdir(parents=True)
        for i in range(6):
            small = Image.fromarray(random.integers(0, 255, (6, 6, 3), np.uint8))
            small.resize((60, 40 + 9 * i), Image.Resampling.BICUBIC).save(root / "data" / c / f"{i}.png")
    of = [f"data.root={root / 'data'}", "data.name=folder", "data.image_size=32", "model.name=conv4_32"]
    run = make_run(root / "runs", *QUICK, *of, "data.validation=none", "model.embedding_dim=8")
    with np.load(run.embeddings()) as stored:
        data = build.load_data(run.spec)
        files = [shutil.copy(data.files[i], root / f"{i}.png") for i in stored["indices"]]
        inputs, embeddings = data.inputs[stored["indices"]], stored["embeddings"]
    shutil.rmtree(root / "data")
    return run, files, inputs, embeddings


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("digits"), *QUICK, "schedule.keep_every=1")


def test_photographs_in_every_form_are_embedded_as_in_the_evaluation_without_the_data_set(photographs):
    run, files, inputs, embeddings = photographs
    model = dmlcore.load(run.path)
    assert isinstance(model, torch.nn.Module)
    assert not model.training
    images = [Image.open(file) for file in files]
    for form in (files, images, [np.asarray(image) for image in images], inputs, torch.from_numpy(inputs)):
        assert model.embed(form).numpy() == pytest.approx(embeddings, abs=1e-5)
    assert torch.equal(model.preprocess(files), torch.from_numpy(inputs))
    assert model.embed(files[0]).numpy() == pytest.approx(embeddings[:1], abs=1e-5)
    assert model(torch.from_numpy(inputs)).requires_grad  # can be trained further


def test_vectors_are_embedded_and_step_chooses_a_kept_checkpoint(digits, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(digits.path.parent))
    model = dmlcore.load(digits.id)
    with np.load(digits.embeddings()) as stored:
        vectors = build.load_data(digits.spec).inputs[stored["indices"]]
        assert model.embed(vectors).numpy() == pytest.approx(stored["embeddings"], abs=1e-6)
    assert (
        model.embed(vectors[:1].tolist()).shape == model.embed(vectors[0]).shape == (1, digits.spec.model.embedding_dim)
    )
    assert model.embed(Image.new("L", (30, 30), 200)).shape[0] == 1  # digits are images of 8 x 8
    assert dmlcore.load(digits, step=1).step == 1
    with pytest.raises(RunError, match="has no kept checkpoint of step 7; kept: 0, 1, 2"):
        dmlcore.load(digits, step=7)


def test_wrong_inputs_and_runs_are_named(photographs, digits, tmp_path, monkeypatch):
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    model, vectors = dmlcore.load(photographs[0]), dmlcore.load(digits)
    for call, error, words in (
        (lambda: model(torch.zeros(3, 32, 32)), ValueError, r"images must have shape \(B, 3, H, W\)"),
        (lambda: model.embed(np.zeros((3, 9, 9), np.uint8)), ValueError, r"\(H, W, 3\) of uint8"),
        (lambda: model.embed([]), ValueError, "at least one sample"),
        (lambda: model.embed(tmp_path / "no.png"), DataError, "no.png is missing"),
        (lambda: vectors.embed(np.zeros((2, 63))), ValueError, r"vectors must have shape \(B, 64\), got \(2, 63\)"),
        (lambda: dmlcore.load("no-such-run"), RunError, "no run 'no-such-run'"),
        (lambda: dmlcore.load(RunStore().create(digits.spec)), RunError, "has no checkpoint yet"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_the_exported_file_is_plain_and_loads_without_the_run(photographs, tmp_path):
    run, files, _, _ = photographs
    to = tmp_path / "out" / "weights.safetensors"
    done = here("export", run.id, "--to", str(to), "--runs", str(run.path.parent))
    assert (done.returncode, done.stdout) == (0, f"{to}\n"), done.stderr
    model = dmlcore.load(run)
    plain = safetensors.torch.load_file(to)
    assert {name: tensor.shape for name, tensor in plain.items()} == {n: t.shape for n, t in model.state_dict().items()}
    with safetensors.safe_open(to, "pt") as file:
        about = file.metadata()
    assert about["run"] == run.id
    assert about["spec"] == run.spec.to_json()
    again = dmlcore.load(to)
    assert torch.equal(again.embed(files), model.embed(files))
    for step in (to.read_bytes()[:100], safetensors.torch.save({"x": torch.zeros(1)}), b"\x80\x04pickle"):
        other = tmp_path / "other.safetensors"
        other.write_bytes(step)
        with pytest.raises(ValueError, match=r"other.safetensors cannot be loaded .*dml export"):
            dmlcore.load(other)


def test_an_ensemble_is_exported_with_what_joins_its_learners(tmp_path):
    run = make_run(tmp_path / "runs", *QUICK, "loss.name=wedl")
    model = dmlcore.load(run)
    vectors = np.random.default_rng(0).normal(size=(5, 64))
    to = export.write(run, tmp_path / "weights.safetensors")
    assert torch.equal(dmlcore.load(to).embed(vectors), model.embed(vectors))


def test_embeddings_that_depend_on_neighbours_are_not_exported_as_weights(tmp_path):
    run = make_run(tmp_path / "runs", *QUICK, "conditioning.neighbours=2")
    assert dmlcore.load(run).embed(np.zeros((2, 64))).shape[0] == 2
    with pytest.raises(ExportError, match="depend on neighbours"):
        export.write(run, tmp_path / "weights.safetensors")


def test_every_split_can_be_exported(digits, tmp_path):
    data, model = build.load_data(digits.spec), dmlcore.load(digits)
    for split in ("train", "validation", "test"):
        with np.load(export.write(digits, tmp_path / f"{split}.npz", split=split)) as arrays:
            assert np.array_equal(arrays["indices"], data.splits[split])
            expected = model.embed(data.inputs[arrays["indices"]]).numpy()
            assert arrays["embeddings"] == pytest.approx(expected, abs=1e-6)
    folder = export.write(digits, tmp_path / "projector", split="validation")
    assert "\tvalidation\t" in (folder / "metadata.tsv").read_text().splitlines()[1]
    for path, split, words in ((("a.npz"), "dev", "use train, validation or test"), ("a.csv", "train", "have a split")):
        with pytest.raises(ExportError, match=words):
            export.write(digits, tmp_path / path, split=split)
