"""Features of image files from a pretrained network, with the preprocessing of its authors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from dmlcore.data import DataError
from dmlcore.models import backbones, pooled_features, pretrained
from dmlcore.models.pooled_features import PooledFeatures
from dmlcore.models.pretrained import WeightsError

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def network() -> PooledFeatures:
    return PooledFeatures("efficientnet_lite0", CPU)


def draw(path: Path, seed: int, size: tuple[int, int] = (300, 256)) -> Path:
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
    Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC).save(path)
    return path


def test_features_are_those_of_the_published_preprocessing(tmp_path: Path, network: PooledFeatures) -> None:
    paths = [draw(tmp_path / f"{seed}.png", seed, (512 + 40 * seed, 512)) for seed in range(3)]
    (features,) = network.batches(paths)
    backbone = backbones.create("efficientnet_lite0", (224, 224))
    pretrained.load(backbone, "efficientnet_lite0", "imagenet")
    backbone.eval()
    for path, vector in zip(paths, features, strict=True):
        image = Image.open(path)
        image = image.resize((round(image.width / 2), 256), Image.Resampling.BICUBIC)
        left, top = (image.width - 224) // 2, 16
        pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32)
        inputs = torch.from_numpy((pixels - 127) / 128).permute(2, 0, 1)[None]
        with torch.inference_mode():
            expected = backbone(inputs).mean((2, 3))[0].numpy()
        assert vector.shape == (1280,)
        np.testing.assert_allclose(vector, expected, rtol=1e-3, atol=1e-4)


def test_batches_keep_the_order_and_hold_errors(tmp_path: Path, network: PooledFeatures, monkeypatch) -> None:
    monkeypatch.setattr(pooled_features, "BATCH", 2)
    paths = [draw(tmp_path / f"{seed}.png", seed) for seed in range(4)]
    for row in (1, 2, 3):  # the second batch has no image
        (tmp_path / f"{row}.png").write_bytes(b"damaged") if row > 1 else None
    made = [*network.batches(paths)]
    assert [len(batch) for batch in made] == [2, 2]
    assert all(isinstance(vector, np.ndarray) for vector in made[0])
    assert not np.allclose(*made[0])
    assert all(isinstance(vector, DataError) and "3.png" in str(made[1][1]) for vector in made[1])


def test_networks_whose_weights_are_here_are_offered() -> None:
    offered = pooled_features.available()
    assert "efficientnet_lite0" in offered
    assert "resnet20" not in offered
    with pytest.raises(
        WeightsError, match=r"conv4: no ImageNet weights are known for this network; use one of resnet18"
    ):
        pooled_features.weights_of("conv4")
