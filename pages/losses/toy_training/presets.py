"""Presets of the Toy training page, and the options of its control panel as plain data for the component."""

from __future__ import annotations

from functools import cache
from typing import Any

from dmlcore import data, losses, pooling
from dmlcore.catalogue import Slider
from dmlcore.replay import toy_runs
from pages.losses.toy_training import state
from pages.losses.toy_training.state import POOLINGS, LossSide, Toy
from pages.shared.server.schema import loss
from pages.shared.state.page_state import Preset

# the captions below describe runs of 400 steps with seed 0
IMAGES = "dim=64&normalize=1&classes=16&samples=4&optimiser=adam&rate=0.0003&part=test"
# A URL without parameters opens the first preset, which is played from a recording instead of being trained.
PRESETS = (
    Preset(
        "moons",
        "Four pairs of interlocking moons. After 400 batches A separates more moons than B, with each of five seeds "
        "(MAP@R 0.72 against 0.59 with this seed).",
        "data=moons",
    ),
    Preset(
        "12 Gaussians",
        "The classes overlap, so no map separates them completely. How far does each loss get?",
        "data=toy",
    ),
    Preset(
        "unseen classes",
        "The same two training runs, shown on the 16 unseen classes.",
        "data=toy&part=test",
    ),
    Preset(
        "pulls, pushes",
        "A only pulls, so all classes collapse to one point; B only pushes, so samples spread without clustering.",
        "data=toy&a.moves=pulls&b.loss=ranking&b.m=0.1&b.moves=pushes",
    ),
    Preset(
        "linked rings",
        "Eight linked rings on a sphere are not separated; MAP@R ends below that of the untrained network.",
        "data=rings&dim=3&normalize=1&b.loss=facenet&b.m=0.2",
    ),
    Preset(
        "digits",
        "Handwritten digits (64 features) on a sphere: FaceNet's squared distances cluster them faster than distances.",
        "data=digits&dim=3&normalize=1&b.loss=facenet&b.m=0.2",
    ),
    Preset(
        "proxies, pairs",
        "Digits again: ProxyNCA++ learns one proxy per class; the contrastive loss compares pairs.",
        "data=digits&dim=3&normalize=1&a.loss=proxy_nca&b.loss=contrastive",
    ),
    Preset(
        "photographs",
        "Birds of unseen classes: a frozen SqueezeNet with average pooling and with generalized sum pooling.",
        f"data=cub&{IMAGES}&a.loss=multi_similarity&b.loss=multi_similarity&b.pooling=gsp",
    ),
    Preset(
        "glyphs",
        "Invented letters of unseen alphabets, embedded by a small network that was pretrained here.",
        f"data=glyphs&{IMAGES}&a.loss=multi_similarity&b.loss=proxy_anchor",
    ),
)
TITLES = {"cub": "Photographs of birds"}
NETWORKS = {
    "cub": "frozen SqueezeNet (ImageNet weights), pooling, linear layer",
    "glyphs": "frozen network of four convolution blocks (trained here), pooling, linear layer",
}


@cache
def options() -> dict[str, Any]:
    """Return the options of the control panel, with a title and a help sentence for each."""
    splits = {"train": "training split", "test": "test split"}
    helps = {
        "train": "Samples the network trains on.",
        "test": "Samples not trained on; for the Gaussians, unseen classes.",
    }
    moves = {
        "both": "Pulls and pushes train the network, as usual.",
        "pulls": "Only distances between samples of one class have a gradient.",
        "pushes": "Only distances between samples of different classes have a gradient.",
    }
    return {
        "data": {
            name: {"title": TITLES.get(name, data.describe(name).title), "help": data.describe(name).sentence}
            for name in toy_runs.list_sets()
        },
        "split": {k: {"title": t, "help": helps[k]} for k, t in splits.items()},
        "moves": {k: {"title": k, "help": text} for k, text in moves.items()},
        "sided": [name for name in state.every_loss() if state.sided(name)],
        "optimiser": {"rmsprop": {"title": "RMSprop", "help": ""}, "adam": {"title": "Adam", "help": ""}},
        "batch_losses": {name: loss(losses.describe(name)) for name in losses.batch_names()},
        "limits": Toy.limits() | {"steps": state.MOST_STEPS, "changes": state.MOST_CHANGES},
        "presets": [p.to_json(Toy) for p in PRESETS if "cub" in toy_runs.list_sets() or "data=cub" not in p.query],
        "images": {name: NETWORKS[name] for name in toy_runs.IMAGES},
        "poolings": {name: {"title": pooling.describe(name).title, "help": ""} for name in POOLINGS},
        "gated": [name for name in POOLINGS if LossSide(pooling=name).gated],
        "gate": [
            {"name": key, "symbol": parameter.symbol, "help": parameter.help, "low": low, "high": high}
            | {"default": getattr(LossSide, key), "log": key == "epsilon", "step": 0.01}
            for key, (low, high) in LossSide.limits().items()
            if isinstance(parameter := pooling.describe("gsp").parameters[key], Slider)
        ],
        "second": Toy().to_json()["sides"][1],
        "recent": toy_runs.RECENT,
        "not_stated": toy_runs.NOT_STATED,
    }
