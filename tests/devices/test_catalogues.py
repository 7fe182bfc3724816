"""Every loss, miner, pooling and network gives the same values on a device as on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore import losses, mining, pooling
from dmlcore.catalogue import Choice
from dmlcore.losses.memory import CrossBatchMemory
from dmlcore.models import backbones, networks
from dmlcore.spec import ModelSpec, PoolingSpec
from dmlcore.spec.sections import DataSpec
from dmlcore.training import batches
from dmlcore.training.objective import has_proxies_among_samples
from tests.devices.pretended import REAL, Record, pretended
from tests.members import all_of, in_one_case

DEVICES = "cpu", "cuda"
LABELS = 0, 0, 0, 1, 1, 2, 2, 2, 3, 3
DIMENSION = 12  # blocks for the members of an ensemble
SIZES = {"classes": 4, "embedding_dim": DIMENSION}
LARGE = {
    "conv4_32",
    "efficientnet_lite1",
    "efficientnet_lite2",
    "resnet34",
    "resnet50",
    "resnet101",
    "mobilenet_v3_large",
    "squeezenet1_1",
}  # built from the other poolings
SMALL = {"prototypes": 4, "memory": 0, "hidden": 5, "width": 3, "grid": 2, "clusters": 3, "dimension": 2}


def embeddings(seed: int = 0) -> Tensor:
    return torch.randn(len(LABELS), DIMENSION, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def compare(compute: Callable[[str], list[Tensor]], atol: float = 1e-11) -> Record:
    """Assert that the results of a function are on the device and equal those on the CPU within `atol`."""
    with pretended() as record:
        expected, found = (compute(device) for device in DEVICES)
        assert all(tensor.device.type == "cuda" for tensor in found)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(one.detach(), other.detach().cpu(), rtol=1e-9, atol=atol)
    return record


def slopes(value: Tensor, points: Tensor, module: nn.Module) -> list[Tensor]:
    """Return the value, and its gradients with respect to the points and the parameters of the module."""
    own = [p for p in module.parameters() if p.requires_grad]
    found = torch.autograd.grad(value, [points, *own], allow_unused=True)
    return [value, *(slope for slope in found if slope is not None)]


def forms(name: str) -> list[dict[str, str]]:
    """Return settings of a loss: its defaults, each of its choices; for one loss each reduction, which all losses
    share.
    """
    info = losses.describe(name)
    choices = [
        {key: option}
        for key, parameter in info.parameters.items()
        if isinstance(parameter, Choice)
        for option in parameter.options
        if option != info.defaults[key]
    ]
    reductions = [{"reduction": word} for word in losses.REDUCTIONS[1:]] if name == "ranking" else []
    return [{}, *reductions, *(choice for choice in choices if fits(name, choice))]


def fits(name: str, choice: dict[str, str]) -> bool:
    try:
        losses.for_training(name, **SIZES, **choice)
    except ValueError:  # requires more than embeddings
        return False
    return True


def test_every_loss() -> None:
    def computed(device: str) -> list[Tensor]:
        torch.default_generator.manual_seed(0)
        loss = losses.for_training(name, **SIZES, **form).double().to(device)
        if has_proxies_among_samples(name):
            loss.trained = torch.tensor([0, 1, 3]).to(device)  # the classes that have samples, as in a fork
        points, labels = embeddings().to(device).requires_grad_(), torch.tensor(LABELS)
        labels = labels.where(labels != 2, 3) if has_proxies_among_samples(name) else labels
        return slopes(loss(points, labels.to(device)), points, loss)

    with all_of() as of:
        for name in losses.LOSSES:
            for form in forms(name):
                with of((name, form)):
                    compare(computed)


def test_every_loss_of_tuples_that_are_mined() -> None:
    def computed(device: str) -> list[Tensor]:
        torch.default_generator.manual_seed(0)
        loss = losses.for_training(name, **SIZES).double().to(device)
        points, labels = embeddings().to(device).requires_grad_(), torch.tensor(LABELS).to(device)
        return slopes(loss(points, labels, mining.create("semi_hard_window", margin=1.0)(points, labels)), points, loss)

    with all_of() as of:
        for name, loss in losses.LOSSES.items():
            if mining.fits("semi_hard", loss):
                with of(name):
                    compare(computed)


def test_every_loss_with_a_memory() -> None:
    def computed(device: str) -> list[Tensor]:
        torch.default_generator.manual_seed(0)
        metric = losses.for_training(name, **SIZES)
        loss = CrossBatchMemory(metric, 3, len(LABELS), DIMENSION, 1).double().to(device)
        labels = torch.tensor(LABELS).to(device)
        for seed in (1, 2, 3, 4):
            loss(embeddings(seed).to(device), labels)
        points = embeddings().to(device).requires_grad_()
        return slopes(loss(points, labels), points, loss)

    with all_of() as of:
        for name in losses.LOSSES:
            if getattr(losses.describe(name), "pairs", False):
                with of(name):
                    compare(computed)


def test_every_miner() -> None:
    def computed(device: str) -> list[Tensor]:
        draw = torch.Generator().manual_seed(0)
        mined = (
            mining.create(name)(embeddings().to(device), labels.to(device), generator=draw) for labels in (usual, alone)
        )
        return [places for each in mined for places in each or ()]

    usual, alone = torch.tensor(LABELS), torch.arange(len(LABELS))

    with all_of() as of:
        for name in mining.names():
            with of(name):
                compare(computed)


def test_every_pooling() -> None:
    def computed(device: str) -> list[Tensor]:
        torch.default_generator.manual_seed(0)
        sizes = {key: value for key, value in SMALL.items() if key in pooling.describe(name).parameters}
        layer = pooling.create(name, 6, **sizes).double().to(device)
        features = torch.randn(3, 6, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        features = features.to(device).requires_grad_()
        pooled = layer(features)
        weights = [] if layer.weights is None else [layer.weights]
        return [pooled, *weights, *slopes(pooled.square().sum(), features, layer)]

    with all_of() as of:
        for name in pooling.names():
            with of(name):
                compare(computed)


@in_one_case(crop=get_args(DataSpec.model_fields["crop"].annotation))
def test_every_crop(crop: str) -> None:
    data, images = (
        DataSpec(augment=True, crop=crop),
        np.random.default_rng(0).integers(0, 256, (4, 3, 20, 16), np.uint8),
    )
    # on a real GPU, a kernel may round an interpolated pixel to the next grey value
    rounding = {"atol": 1.0} if REAL else {}
    compare(lambda device: [batches.augment(batches.Gathered(images), 16, data, 1, device)], **rounding)


def test_every_network() -> None:
    with all_of() as of:
        for name in [*networks.TAKES, *(name for name in backbones.names() if name not in LARGE)]:
            with of(name), pretended():
                shape = {"mlp": (6,), "tokens": (5,)}.get(name, (3, 64, 64))
                known = {"pool": PoolingSpec(name="gsp"), "vocabulary": 9} if name == "tokens" else {}
                model = networks.build(ModelSpec(name=name, embedding_dim=6, hidden=(8,)), shape, seed=0, **known)
                inputs = torch.randint(0, 9, (2, *shape), dtype=torch.int64 if name == "tokens" else torch.uint8)
                embedded = model.to("cuda").train()(inputs.float().to("cuda") if name == "mlp" else inputs.to("cuda"))
                embedded.square().sum().backward()
                assert {x.device.type for x in (embedded, *model.parameters(), *model.buffers())} == {"cuda"}
