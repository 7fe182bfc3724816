"""Distributed wrapper of pytorch-metric-learning, run on two local processes that communicate through gloo.

The child processes import this module, so it imports nothing from dmlcore.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, distributed
from torch.multiprocessing.spawn import spawn

PROCESSES = 2
MODES = {"all": False, "efficient": True}


def gradients(embeddings: Tensor, labels: Tensor) -> dict[str, tuple[float, Tensor]]:
    """Return, for each mode in `MODES`, the multi-similarity loss and the gradient that DDP would use, shape (B, D).

    Process i has the samples i, i + 2, i + 4, .... The gradient is the mean over the processes, as in
    DistributedDataParallel. The loss is the mean over the processes divided by their number, because the wrapper
    multiplies the loss by it.
    """
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "batch.npz", embeddings=embeddings.numpy(), labels=labels.numpy())
        spawn(_process, (folder,), nprocs=PROCESSES)
        result: dict[str, tuple[float, Tensor]] = {}
        for mode in MODES:
            gradient, value = torch.zeros_like(embeddings), 0.0
            for process in range(PROCESSES):
                with np.load(Path(folder) / f"{process}-{mode}.npz") as own:
                    gradient[process::PROCESSES] = torch.from_numpy(own["gradient"]) / PROCESSES
                    value += float(own["value"]) / PROCESSES**2
            result[mode] = value, gradient
    return result


def _process(process: int, folder: str) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    from pytorch_metric_learning.losses import MultiSimilarityLoss
    from pytorch_metric_learning.utils.distributed import DistributedLossWrapper

    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=process, world_size=PROCESSES)
    try:
        with np.load(Path(folder) / "batch.npz") as batch:
            x, y = (torch.from_numpy(batch[name])[process::PROCESSES] for name in ("embeddings", "labels"))
        for mode, efficient in MODES.items():
            own = x.clone().requires_grad_()
            value = DistributedLossWrapper(MultiSimilarityLoss(2, 50, 0.5), efficient=efficient)(own, y)
            (gradient,) = torch.autograd.grad(value, own)
            np.savez(Path(folder) / f"{process}-{mode}.npz", value=value.item(), gradient=gradient.numpy())
    finally:
        distributed.destroy_process_group()
