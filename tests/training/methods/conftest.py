"""Images, pretrained weights and a cache for the tests of runs in two stages."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import save_file

from dmlcore.training import build, stored_features
from tests.training.methods.two_stages import CPU, SPEC


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stored_features, "CHUNK", 16)


@pytest.fixture(scope="module")
def digits() -> Any:
    """Return images of digits, 16 pixels per side, a few of each split."""
    whole = build.load_data(SPEC)
    splits = {name: rows[::12] for name, rows in whole.splits.items()}
    return dataclasses.replace(whole, inputs=np.ascontiguousarray(whole.inputs[:, :, ::2, ::2]), splits=splits)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory, digits: Any) -> str:
    """Write a pretrained backbone that differs from the initial one of the run's seed."""
    network = build.build(SPEC.with_overrides(["seed=7"]), digits, CPU, start=False).model
    path = tmp_path_factory.mktemp("weights") / "conv4_32.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in network.backbone.state_dict().items()}, path)
    return str(path)
