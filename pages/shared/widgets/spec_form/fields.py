"""The widget of any key of a spec: its label, and the words that its values are shown by."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from dmlcore.spec import keys
from pages.shared.widgets.forms import Form

# The one table of labels. Each is read alone too, in an error or in a list of changes.
LABELS: Mapping[str, str] = {
    "name": "Name",
    "protocol": "Follows the protocol",
    "seed": "Seed",
    "device": "Device",
    "ks": "K of R@K",
    "data.name": "Data set",
    "data.root": "Folder of the data",
    "data.split": "Test on",
    "data.validation": "Validate on",
    "data.folds": "Class folds",
    "data.fold": "Which one validates",
    "data.fold_order": "Folds are",
    "data.fold_seed": "Seed of the folds",
    "data.image_size": "Picture size",
    "data.standardize": "Standardise vectors",
    "data.augment": "Flip and cut at random",
    "data.fresh": "Collages anew at every step",
    "data.crop": "Cut",
    "data.crop_area": "Share of the area",
    "data.crop_ratio": "Aspect ratio",
    "data.views": "Views kept",
    "model.name": "Network",
    "model.hidden": "Hidden layers",
    "model.embedding_dim": "Embedding dimension",
    "model.normalize": "Normalise embeddings",
    "model.start": "Backbone starts from",
    "model.keep_classifier": "Keep the 1000-way output",
    "model.freeze": "Frozen",
    "model.freeze_batch_norm": "Freeze batch norm",
    "pooling.name": "Pooling",
    "pooling.parameters": "Settings of the pooling",
    "pooling.zero_shot": "Zero-shot share",
    "pooling.ridge": "Ridge",
    "pooling.logit_scale": "Logit scale",
    "loss.name": "Loss",
    "loss.parameters": "Settings of the loss",
    "loss.reduction": "Reduction",
    "loss.learning_rate": "Learning rate of proxies",
    "loss.memory": "Batches in memory",
    "loss.memory_start": "Memory joins in after",
    "miner.name": "Miner",
    "miner.parameters": "Settings of the miner",
    "batch.classes": "Batch classes",
    "batch.samples": "Samples each",
    "batch.sampler": "Batches are",
    "batch.refresh": "Embed anew every",
    "batch.neighbours": "Neighbours",
    "optimiser.name": "Optimiser",
    "optimiser.learning_rate": "Learning rate",
    "optimiser.weight_decay": "Weight decay",
    "optimiser.decay_batch_norm": "Decay batch norm and biases too",
    "optimiser.momentum": "Momentum",
    "optimiser.epsilon": "Epsilon",
    "optimiser.head_factor": "Head × rate",
    "optimiser.clip_value": "Clip value",
    "optimiser.clip_norm": "Clip norm",
    "schedule.steps": "Steps",
    "schedule.validate_every": "Validate every",
    "schedule.monitor": "Weights are chosen by",
    "schedule.monitor_part": "Weights are chosen on",
    "schedule.patience": "Patience",
    "schedule.plateau": "Plateau",
    "schedule.plateau_factor": "Plateau factor",
    "schedule.decay": "Learning rate over the steps",
    "schedule.decay_every": "Lowered every",
    "schedule.decay_factor": "Lowered by the factor",
    "schedule.warm_up": "Warm-up",
    "schedule.checkpoint_every": "Checkpoint every",
    "schedule.keep_every": "Keep a checkpoint every",
    "schedule.measure_every": "Measure every",
    "compute.precision": "Arithmetic",
    "compute.compile": "Compile the network",
    "fork.run": "Run that is forked",
    "fork.step": "Step that it forks from",
    "fork.leave_out": "Left out of the training part",
    "fork.relabel": "Training samples relabelled",
}
WORDS: Mapping[str, str] = {
    "samples": "new samples of known classes",
    "classes": "classes never seen",
    "own": "its own parts",
    "none": "nothing",
    "mean_valid": "mean over all triplets",
    "mean_nonzero": "mean over triplets that cost something",
    "mean_raw": "mean without clamps",
    "mlp": "MLP, for vectors",
    "resnet20": "ResNet20, for small pictures",
    "conv4": "Four blocks of convolutions, for small pictures",
    "conv4_32": "Four blocks of 32 channels, for small pictures",
    "resnet18": "ResNet-18",
    "resnet34": "ResNet-34",
    "resnet50": "ResNet-50",
    "resnet101": "ResNet-101",
    "googlenet": "GoogLeNet",
    "bn_inception": "BN-Inception",
    "squeezenet1_0": "SqueezeNet 1.0",
    "squeezenet1_1": "SqueezeNet 1.1",
    "mobilenet_v3_small": "MobileNetV3 small",
    "mobilenet_v3_large": "MobileNetV3 large",
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
    "affine": "turned, sheared and scaled a little, for writing",
    "step": "lowered in steps",
    "cosine": "half a cosine down to 0",
    "float32": "float32",
    "bfloat16": "bfloat16",
}
# Where a word means something else than above, or a field may be empty.
WORDS_OF: Mapping[str, Mapping[str, str]] = {
    "schedule.decay": {"none": "constant"},
    "data.fold_order": {"random": "classes drawn at random"},
    "model.start": {"imagenet": "ImageNet weights"},
    "model.freeze": {"backbone": "the backbone"},
}
EMPTY: Mapping[str, str] = {
    "data.root": "the usual places",
    "data.image_size": "as stored",
    "model.start": "random numbers",
    "loss.learning_rate": "as the network",
}


@cache
def cuda() -> bool:
    """Whether this machine has a CUDA device that torch can use."""
    return torch.cuda.is_available()


def field(form: Form, key: str, **shown: Any) -> Any:
    """The widget of a key of the spec."""
    words = {**WORDS, **WORDS_OF.get(key, {}), **shown.pop("words", {})}
    if key in EMPTY:
        shown = {"placeholder": EMPTY[key]} | shown
    return form.field(key, LABELS[key], keys()[key], words=lambda value: words.get(value, value), **shown)
