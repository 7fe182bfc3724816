"""Options of the control panel on the Toy training page, as plain data for the component."""

from __future__ import annotations

from functools import cache
from typing import Any

from dmlcore import data, losses, pooling
from dmlcore.catalogue import Slider
from dmlcore.replay import toy_runs
from pages.losses.toy_training import state as toys_state
from pages.losses.toy_training.presets import PRESETS
from pages.losses.toy_training.state import POOLINGS, LossSide, Toy
from pages.shared.server.schema import loss

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
        "sided": [name for name in toys_state.every_loss() if toys_state.sided(name)],
        "optimiser": {"rmsprop": {"title": "RMSprop", "help": ""}, "adam": {"title": "Adam", "help": ""}},
        "batch_losses": {name: loss(losses.describe(name)) for name in losses.batch_names()},
        "limits": Toy.limits() | {"steps": toys_state.MOST_STEPS, "changes": toys_state.MOST_CHANGES},
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
