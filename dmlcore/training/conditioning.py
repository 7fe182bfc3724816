"""Training with conditioned embeddings: the switch from single samples to samples with their neighbours.

The network is trained alone for `conditioning.after` steps. Its best weights then embed the training split, in which
the neighbours of every sample are searched once. From then on, each sample of a batch forms a sequence of its own
embedding and the stored embeddings of its neighbours. By default the network is then frozen, because Can 2018 does not
mention further training. With `conditioning.continued` it continues to train, and the stored embeddings are recomputed
every `batch.refresh` steps.

Reference:
    Can 2018, Ch. 4.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dmlcore.models.conditioned import in_order
from dmlcore.storage.metrics_rows import Row
from dmlcore.training.batches import embed
from dmlcore.training.neighbours import neighbours
from dmlcore.training.objective import seed_of
from dmlcore.training.state import TrainingState, use_best
from dmlcore.typing import Ints


def is_due(state: TrainingState) -> bool:
    """Return True if conditioning starts now: it has not started, and `conditioning.after` steps are done."""
    spec, progress = state.spec.conditioning, state.progress
    return spec.neighbours > 0 and not progress.conditioned and progress.step == spec.after


def begin(state: TrainingState) -> list[Row]:
    """Start conditioning on neighbours, and return a metrics row that records the start.

    The best weights of the unconditioned network are restored, and the neighbours of each training sample are found
    with them. The search for the best weights then starts again.
    """
    progress = state.progress
    origin = progress.best_step if state.best else progress.step
    use_best(state)
    state.best, state.best_loss = {}, {}
    progress.best_score, progress.best_step, progress.stale, progress.plateau = None, progress.step, 0, 0
    progress.conditioned = True
    find(state)
    train = state.data.labels[state.data.splits["train"]]
    listed = state.neighbourhood["neighbours"].numpy()
    same = float((train[listed] == train[:, None]).mean())
    return [
        {"kind": "conditioning", "step": progress.step, "from": origin, "neighbours": listed.shape[1]}
        | {"same_class": same}
    ]


def find(state: TrainingState) -> None:
    """Embed the training split without conditioning, and store the embeddings and the neighbours of each sample."""
    table = _embedded(state)
    listed = neighbours(table, None, state.spec.conditioning.neighbours)
    state.neighbourhood = {"table": table, "neighbours": torch.from_numpy(listed)}


def before_step(state: TrainingState, number: int) -> None:
    """Prepare a training step with conditioning: freeze the network, or recompute the stored embeddings if due."""
    if not state.progress.conditioned:
        return
    spec = state.spec
    if spec.conditioning.continued:
        done, every = number - 1 - spec.conditioning.after, spec.batch.refresh
        if done > 0 and every > 0 and done % every == 0:
            state.neighbourhood["table"] = _embedded(state)
        return
    conditioning = state.model.conditioning
    assert conditioning is not None
    state.model.eval()
    conditioning.train()
    own = {id(parameter) for parameter in conditioning.parameters()}
    for parameter in state.model.parameters():
        parameter.requires_grad_(id(parameter) in own)


def embeddings(state: TrainingState, number: int, alone: Tensor, indices: Ints) -> Tensor:
    """Return the conditioned embeddings (B, D) that the loss receives in step `number`.

    They combine the embeddings of the unconditioned network with those of the neighbours.
    """
    if not state.progress.conditioned:
        return alone
    places = np.searchsorted(state.data.splits["train"], indices)
    listed = state.neighbourhood["neighbours"].numpy()[places]
    listed = in_order(listed, state.spec.conditioning.order, seed=seed_of(state.spec.seed, "order", number))
    rows = torch.from_numpy(np.ascontiguousarray(listed)).to(alone.device)
    return state.model.condition(torch.cat([alone[:, None], state.neighbourhood["table"][rows]], dim=1))


def _embedded(state: TrainingState) -> Tensor:
    return torch.from_numpy(embed(state.model, state.data, state.data.splits["train"], state.device)).to(state.device)
