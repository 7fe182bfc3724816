"""Maps by cuML: what is passed to it, checked with a stand-in; cuML itself runs on no machine of the tests."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from dmlcore import projection
from dmlcore.inspection.maps import maps
from dmlcore.inspection.maps.settings import Settings

POINTS = np.random.default_rng(0).normal(size=(40, 6)) * 5 + 3


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Stand-in for cuML, which records the settings and the points of each map."""
    calls: list[dict[str, Any]] = []

    class Model:
        def __init__(self, **settings: Any) -> None:
            calls.append(settings)

        def fit_transform(self, points: np.ndarray) -> np.ndarray:
            calls[-1] |= {"points": points}
            return points[:, :2].astype(np.float64)

    manifold = types.ModuleType("cuml.manifold")
    manifold.TSNE, manifold.UMAP = Model, Model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuml", types.ModuleType("cuml"))
    monkeypatch.setitem(sys.modules, "cuml.manifold", manifold)
    return calls


def test_tsne_gets_its_settings_and_standardised_points(asked: list[dict[str, Any]]) -> None:
    plane = projection.tsne(POINTS, perplexity=30, iterations=300, seed=7, device="cuda")
    (given,) = asked
    assert (given["max_iter"], given["random_state"], given["init"]) == (300, 7, "pca")
    assert given["perplexity"] == 13  # a third of the other points
    assert given["n_neighbors"] == 39
    assert given["points"].dtype == np.float32
    assert np.abs(given["points"].mean(axis=0)).max() < 1e-6
    assert plane.shape == (40, 2)
    assert plane.dtype == np.float32


def test_umap_gets_its_settings(asked: list[dict[str, Any]]) -> None:
    projection.umap(POINTS, neighbours=99, min_dist=0.3, iterations=120, seed=2, device="cuda")
    (given,) = asked
    assert (given["n_neighbors"], given["min_dist"]) == (39, 0.3)
    assert (given["n_epochs"], given["random_state"]) == (120, 2)


def test_maps_of_runs_use_the_device_of_their_settings(asked: list[dict[str, Any]]) -> None:
    for method in ("tsne", "umap"):
        maps.draw(POINTS, Settings(method=method, device="cuda"))
    assert len(asked) == 2
    maps.draw(POINTS, Settings(iterations=100))
    assert len(asked) == 2


def test_without_cuml_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuml.manifold", None)
    with pytest.raises(projection.Missing, match="need the package cuml"):
        projection.tsne(POINTS, device="cuda")


@pytest.mark.parametrize("method", [projection.tsne, projection.umap])
def test_devices_and_starts_that_do_not_fit_are_refused(method: Any) -> None:
    with pytest.raises(ValueError, match="cpu or cuda, got 'gpu'"):
        method(POINTS, device="gpu")
    with pytest.raises(ValueError, match="starts from another map is computed on the CPU"):
        method(POINTS, start=np.zeros((40, 2)), device="cuda")


def test_maps_of_the_cpu_keep_their_names() -> None:
    assert Settings().to_json() == '{"iterations": 400, "method": "tsne", "perplexity": 30.0, "seed": 0}'
    assert Settings(device="cuda").name != Settings().name
    assert Settings(method="pca", device="cuda").name == Settings(method="pca").name
    assert Settings.from_json(Settings(device="cuda").to_json()) == Settings(device="cuda")
    assert Settings(device="cuda").words.endswith("on a GPU")
    with pytest.raises(ValueError, match="device must be one of"):
        Settings(device="tpu")  # type: ignore[arg-type]
