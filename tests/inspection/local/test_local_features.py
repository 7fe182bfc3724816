"""Local features of digits, of a network trained here, and of CIFAR-10 if its pack is available."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dmlcore import data
from dmlcore.data import DataError
from dmlcore.inspection.local import local_features
from dmlcore.pooling.analysis.prototype_shares import read
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.training.build import build, load_data
from dmlcore.training.checkpoint_writer import save

SPEC = {
    "data": {"name": "digits_pictures"},
    "model": {"name": "resnet20", "embedding_dim": 2, "normalize": False},
    "batch": {"classes": 4, "samples": 4},
}


def test_patches_of_digits_are_their_pixels():
    found = local_features.digit_patches(3)
    assert (found.features.shape, found.grid, found.dimension) == ((640, 36, 2), (6, 6), 9)
    assert found.labels.tolist() == sorted(found.labels.tolist())
    assert found.ranks[:65].tolist() == [*range(64), 0]
    digits = data.load("digits")
    pixels = np.rint(digits.inputs[found.indices[70]].reshape(8, 8) * 255)
    assert (found.patch(70, 8)[..., 0] == pixels[1:4, 2:5]).all()  # position 8 of 6 x 6: row 1, column 2
    assert (found.patch(70, 35)[..., 1] == pixels[5:8, 5:8]).all()


def test_the_plane_is_the_one_of_largest_variance():
    found = local_features.digit_patches(2)
    digits = data.load("digits")
    grey = digits.inputs[found.indices].reshape(-1, 8, 8).astype(float)
    patches = np.stack([grey[:, r : r + 7, c : c + 7] for r in (0, 1) for c in (0, 1)], -1).reshape(-1, 4)
    variances = np.linalg.eigvalsh(np.cov(patches.T))[::-1]
    assert found.kept == pytest.approx(variances[:2].sum() / variances.sum(), rel=1e-4)
    np.testing.assert_allclose(np.cov(found.features.reshape(-1, 2).T), np.diag(variances[:2]), atol=1e-4)


@pytest.mark.parametrize(("pooling", "dimension"), [("gap", 2), ("gsp", 2), ("gmp", 64)])
def test_a_run_gives_the_features_it_pools(tmp_path, monkeypatch, pooling, dimension):
    monkeypatch.setattr(local_features, "MOST_PER_CLASS", 4)
    parameters = {"prototypes": 4, "memory": 0} if pooling == "gsp" else {}
    spec = RunSpec.parse(SPEC | {"pooling": {"name": pooling, "parameters": parameters}})
    run = RunStore(tmp_path).create(spec)
    with pytest.raises(RunError, match="no checkpoint yet"):
        local_features.of_run(run)
    dataset = load_data(spec)
    state = build(spec, dataset, torch.device("cpu"))
    save(run, state, 0)
    found = local_features.of_run(run)
    assert found.dimension == dimension
    assert found.features.shape[1:] == (64, 2)
    assert set(found.indices) <= set(dataset.splits["test"])
    if dimension == 64:  # local maxima of channels are no weighted sum of features
        assert found.weights is None
        assert 0 < found.kept < 1
        return
    assert found.kept is None
    with torch.inference_mode():
        embedded = state.model.eval()(torch.from_numpy(dataset.inputs[found.indices[:5]]))
    pooled = np.einsum("ij,ijd->id", found.weights, found.features)[:5]
    np.testing.assert_allclose(pooled, embedded.numpy(), rtol=1e-3, atol=1e-4)
    assert read(found.features, 16, found.weights).holds.all()


def test_a_run_without_images_is_refused(tmp_path):
    run = RunStore(tmp_path).create(RunSpec())
    with pytest.raises(RunError, match="no images with local features"):
        local_features.of_run(run)


def test_missing_weights_are_named(monkeypatch):
    monkeypatch.setattr(local_features, "pretrained_weights", lambda: None)
    with pytest.raises(DataError, match=r"resnet20-cifar10\.pt was not found"):
        local_features.cifar10()


@pytest.mark.skipif(
    local_features.pretrained_weights() is None or data.available("cifar10") is None,
    reason="needs the CIFAR-10 pack and resnet20-cifar10.pt of ../shared/data",
)
def test_the_bound_holds_on_every_image_of_cifar10():
    found = local_features.cifar10()
    assert found.features.shape[1:] == (64, 2)
    assert len(found.labels) >= 400
    assert found.patch(3, 63).shape == (12, 12, 3)
    reading = read(found.features, 48)
    assert reading.holds.all()
    # Wrong assignments break the equality, so the check can fail.
    wrong = reading.histograms[::-1] @ reading.prototypes[::-1]
    assert (np.linalg.norm(wrong - reading.pooled, axis=1) > reading.mean_distance).any()
