"""Names, shapes and outputs of the public networks, as computed by torchvision and the port of BN-Inception.

`python -m tests.models.backbones.golden` rewrites tests/golden/backbones.json; it needs torchvision and
pretrainedmodels
(the stored file was written with 0.29.1 and 0.7.4; SqueezeNet and MobileNetV3 with 0.28.0, without classifiers).
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

PATH = Path(__file__).parents[2] / "golden/backbones.json"
HEADLESS = ("squeezenet1_0", "squeezenet1_1", "mobilenet_v3_small", "mobilenet_v3_large")  # no classifier to keep
SIZE = 64  # of the image whose features are compared


def layout(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Return name -> shape, with one entry per batch norm, name -> "norm C"."""
    norms = {k.removesuffix(".running_var"): v for k, v in state.items() if k.endswith(".running_var")}
    vectors = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    parts = {f"{norm}.{part}" for norm in norms for part in vectors}
    assert parts <= state.keys()
    assert all(state[f"{norm}.{part}"].shape == width.shape for norm, width in norms.items() for part in vectors[:4])
    found = {k: "x".join(map(str, v.shape)) for k, v in state.items() if k not in parts}
    return found | {norm: f"norm {len(width)}" for norm, width in norms.items()}


def fill(model: nn.Module) -> None:
    """Give every parameter and statistic random values that are a function of its name."""
    for key, value in model.state_dict().items():
        if key.endswith("num_batches_tracked"):
            continue
        generator = torch.Generator().manual_seed(zlib.crc32(key.encode()))
        values = torch.rand(value.shape, generator=generator, dtype=torch.float64) * 2 - 1
        if value.ndim == 1:
            values = values * 0.5 + (1 if key.endswith(("running_var", "weight")) else 0)
        else:
            values = values * math.sqrt(6 / value[0].numel())  # He: variance 2 / fan in
        value.copy_(values)


def image() -> Tensor:
    """Return an image (1, 3, SIZE, SIZE), float64."""
    return torch.randn(1, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def outputs(features: Tensor) -> list[float]:
    """Return 16 numbers of the feature map, spread over channels and positions, and its mean square."""
    flat = features.flatten()
    return [*flat[:: len(flat) // 16][:16].tolist(), flat.square().mean().item()]


def main() -> None:
    """Write the file."""
    import pretrainedmodels
    import torchvision.models as published

    made: dict[str, Any] = {name: getattr(published, name)(weights=None) for name in ("resnet18", "resnet34")}
    made |= {name: getattr(published, name)(weights=None) for name in ("resnet50", "resnet101")}
    made["googlenet"] = published.googlenet(weights=None, aux_logits=False, init_weights=False)
    made["bn_inception"] = pretrainedmodels.bninception(pretrained=None)
    made |= {name: getattr(published, name)(weights=None) for name in HEADLESS}
    found = {}
    for name, model in made.items():
        fill(model.double().eval())
        if name in HEADLESS:
            model.classifier = nn.Identity()
        entry = {"parameters": sum(p.numel() for p in model.parameters()), "layout": layout(model.state_dict())}
        features = model
        if name == "bn_inception" or name in HEADLESS:
            features = model.features
        else:
            model.avgpool, model.fc, model.dropout = nn.Identity(), nn.Identity(), nn.Identity()
        with torch.no_grad():
            entry["outputs"] = outputs(features(image()))
        found[name] = entry
    PATH.write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
