"""The widget of any key of a spec, and the words that its values are shown by."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from dmlcore.spec import keys
from pages._ui.forms import Form

WORDS = {
    "samples": "new samples of known classes",
    "classes": "classes never seen",
    "none": "nothing",
    "mean_valid": "mean over all triplets",
    "mean_nonzero": "mean over triplets that cost something",
    "mean_raw": "mean without clamps",
    "mlp": "MLP, for vectors",
    "resnet20": "ResNet20, for small pictures",
    "resnet18": "ResNet-18",
    "resnet34": "ResNet-34",
    "resnet50": "ResNet-50",
    "resnet101": "ResNet-101",
    "googlenet": "GoogLeNet",
    "bn_inception": "BN-Inception",
    "timm": "another one, of timm",
    "tokens": "Table of token vectors, for bags",
    "rmsprop": "RMSprop",
    "adam": "Adam",
    "adamw": "AdamW",
    "sgd": "SGD",
    "cpu": "CPU",
    "cuda": "CUDA",
    "map_at_r": "MAP@R",
    "recall_at_1": "R@1",
    "validation": "the validation part",
    "test": "the TEST part",
    "balanced": "so many samples of so many classes",
    "random": "at random",
    "mined": "triplets mined in the whole part",
    "neighbourhood": "neighbourhoods of the whole part",
    "contiguous": "ranges of classes",
    "shift": "shifted a little",
    "resized": "a part of random size, resized",
    "step": "lowered in steps",
    "cosine": "half a cosine down to 0",
    "float32": "float32",
    "bfloat16": "bfloat16",
}


@cache
def cuda() -> bool:
    """Whether this machine has a CUDA device that torch can use."""
    return torch.cuda.is_available()


def field(form: Form, key: str, label: str, **shown: Any) -> Any:
    """The widget of a key of the spec."""
    words = shown.pop("words", WORDS)
    return form.field(key, label, keys()[key], words=lambda value: words.get(value, value), **shown)
