"""Networks of the user: permission, import, contract of shapes, and use in place of a catalogue backbone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from dmlcore.models import backbones, networks
from dmlcore.models.networks import ModelError
from dmlcore.spec import ModelSpec, own_network

SOURCE = """
import torch
from torch import nn
from dmlcore.models.backbones import Normalisation

open(MARKER, "a").write("imported ")

class Net(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.layer = nn.Conv2d(3, width, 4, stride=4)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, images):
        return self.norm(self.layer(images))

class Flat(Net):
    def forward(self, images):
        return super().forward(images).mean((2, 3))

class Grey(Net):
    normalisation = Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), scale=255)

class Maps(Net):
    normalisation = "imagenet"

class Tokens(Net):
    def forward(self, images):
        return super().forward(images).flatten(2)

class Whole(Net):
    def forward(self, images):
        return super().forward(images).argmax(1).float().int()[:, None]

class Pair(Net):
    def forward(self, images):
        return super().forward(images), None

class Narrow(Net):
    def __init__(self):
        super().__init__(3)

class Fixed(Net):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(7, 2)

    def forward(self, images):
        return self.head(super().forward(images).flatten(1))

def nothing():
    pass

def fails():
    raise RuntimeError("no weights")

VALUE = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write the module of a user in the working directory and return its name; importing it writes `marker`."""
    name = f"my_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SOURCE.replace("MARKER", repr(str(tmp_path / "marker"))))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv(own_network.NETWORKS, raising=False)
    monkeypatch.setenv(own_network.FOLDER, str(tmp_path))
    return name


def permitted(monkeypatch: pytest.MonkeyPatch, name: str) -> str:
    """Permit a network as its user does, and return its name."""
    monkeypatch.setenv(own_network.NETWORKS, f"other.module:make, {name}")
    return name


@pytest.mark.parametrize(("factory", "size"), [("Net", (2, 6, 8, 5)), ("Flat", (2, 6, 1, 1))])
def test_gives_features(module: str, monkeypatch: pytest.MonkeyPatch, factory: str, size: tuple[int, ...]) -> None:
    name = permitted(monkeypatch, f"{module}:{factory}")
    backbone = backbones.create(name, (32, 20))
    assert backbone.out_channels == 6
    assert backbone.training  # the dry run restores the mode
    assert int(backbone.network.norm.num_batches_tracked) == 0  # and leaves the statistics of batch norm alone
    assert backbone(torch.rand(2, 3, 32, 20)).shape == size


def test_network_embeds_with_options(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ModelSpec(name=permitted(monkeypatch, f"{module}:Net"), options={"width": 9}, embedding_dim=5)
    network = networks.build(spec, (1, 16, 16), seed=0)
    again = networks.build(spec, (1, 16, 16), seed=0)
    assert all(map(torch.equal, network.state_dict().values(), again.state_dict().values()))
    assert network(torch.randint(0, 255, (4, 1, 16, 16)).byte()).shape == (4, 5)
    assert network.state_dict()["backbone.network.layer.weight"].shape == (9, 3, 4, 4)


def test_own_normalisation(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = backbones.create(permitted(monkeypatch, f"{module}:Grey"), (16, 16))
    assert backbone.normalisation.scale == 255


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("nothing", "returned None; return an instance of torch.nn.Module"),
        ("fails", "failed: RuntimeError: no weights"),
        ("VALUE", "has no function or class 'VALUE'; it has: .*Net"),
        ("Maps", "its attribute normalisation is a str"),
        ("Tokens", r"float32 of shape \(2, 6, 16\) for images of shape \(2, 3, 16, 16\); expected features"),
        ("Whole", r"int32 of shape"),
        ("Pair", "returns a tuple for two images"),
        ("Fixed", r"cannot process images of shape \(2, 3, 16, 16\): RuntimeError"),
    ],
)
def test_refuses_other_modules(module: str, monkeypatch: pytest.MonkeyPatch, factory: str, words: str) -> None:
    spec = ModelSpec(name=permitted(monkeypatch, f"{module}:{factory}"))
    with pytest.raises(ModelError, match=f"^model.name: .*{words}"):
        networks.build(spec, (3, 16, 16), seed=0)


def test_refuses_wrong_options(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ModelSpec(name=permitted(monkeypatch, f"{module}:Net"), options={"depth": 9})
    with pytest.raises(ModelError, match=r"unexpected keyword argument 'depth'; correct it, or model\.options"):
        networks.build(spec, (3, 16, 16), seed=0)


def test_refuses_ambiguous_frozen_features(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ModelSpec(name=permitted(monkeypatch, f"{module}:Narrow"), freeze="backbone")
    with pytest.raises(ModelError, match=r"model\.freeze: .*3 channels"):
        networks.build(spec, (3, 16, 16), seed=0)


def test_missing_module(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImportError, match=r"no_such_module\.net cannot be imported.*run the command in the folder"):
        backbones.create(permitted(monkeypatch, "no_such_module.net:make"), (16, 16))


@pytest.mark.parametrize("others", ["", "{module}:Flat", "{module}", "{module}:*"])
def test_imports_nothing_without_permission(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    monkeypatch.setenv(own_network.NETWORKS, others.format(module=module))
    with pytest.raises(ModelError, match=f"imported only if you name it: .*DML_NETWORKS={module}:Net"):
        networks.build(ModelSpec(name=f"{module}:Net"), (3, 16, 16), seed=0)
    assert not (tmp_path / "marker").exists()
