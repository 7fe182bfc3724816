"""What each key of a spec had when it came: a digest hashes what differs from this, whatever the defaults are today.

So a default may change without old and new runs being taken for each other, and stored runs keep their digests. A key
that is new gets a line here, with the value by which a run is what it was without the key. No line ever changes.
Hyper-parameters of losses, poolings and miners are left out of a spec where they have their default, and their defaults
never change: `tests/contracts/test_first_parameters.py`.
"""

from collections.abc import Mapping
from typing import Any

FIRST: Mapping[str, Any] = {
    "name": "",
    "protocol": "",
    "seed": 0,
    "device": "auto",
    "ks": (1, 2, 4, 8),
    "data": {
        "name": "digits",
        "root": None,
        "split": None,
        "validation": None,
        "folds": 0,
        "fold": 1,
        "fold_order": "contiguous",
        "fold_seed": 0,
        "image_size": None,
        "standardize": True,
        "augment": True,
        "crop": "shift",
        "fresh": False,
        "crop_area": (0.16, 1.0),
        "crop_ratio": (0.75, 1.3333333333333333),
        "views": 0,
    },
    "model": {
        "name": "mlp",
        "hidden": (128,),
        "embedding_dim": 64,
        "normalize": True,
        "lipschitz": False,
        "start": None,
        "keep_classifier": False,
        "freeze": "none",
        "freeze_batch_norm": False,
        "gather": "none",
    },
    "pooling": {
        "name": "gap",
        "parameters": {},
        "zero_shot": 0.0,
        "ridge": 0.05,
        "logit_scale": 9.5,
    },
    "loss": {
        "name": "ranking",
        "parameters": {},
        "reduction": "mean_valid",
        "learning_rate": None,
        "memory": 0,
        "memory_start": 1000,
        "batch_pairs": 0.0,
    },
    "projection": {
        "pool": 0,
        "weight": 2e-4,
        "patience": 3,
        "first": "random",
    },
    "miner": {
        "name": "all",
        "parameters": {},
    },
    "batch": {
        "classes": 8,
        "samples": 8,
        "sampler": "balanced",
        "refresh": 200,
        "neighbours": 16,
    },
    "optimiser": {
        "name": "adam",
        "learning_rate": 0.001,
        "weight_decay": 0.0,
        "decay_batch_norm": True,
        "momentum": 0.9,
        "epsilon": 1e-08,
        "head_factor": 1.0,
        "clip_value": 0.0,
        "clip_norm": 0.0,
    },
    "schedule": {
        "steps": 400,
        "validate_every": 50,
        "monitor": "map_at_r",
        "monitor_part": "validation",
        "patience": 0,
        "plateau": 0,
        "plateau_factor": 0.5,
        "decay": "none",
        "decay_every": 1000,
        "decay_factor": 0.1,
        "warm_up": 0,
        "checkpoint_every": 50,
        "keep_every": 0,
        "measure_every": 10,
        "covering_every": 0,
        "cluster": False,
    },
    "compute": {
        "precision": "float32",
        "compile": False,
    },
    "fork": {
        "run": "",
        "step": 0,
        "leave_out": (),
        "leave_out_samples": (),
        "relabel": (),
    },
}
