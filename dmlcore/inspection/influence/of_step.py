"""Influence of each sample of one training step on the margin of failures, to first order in the learning rate.

The margin of a failure is d(query, wrong) - d(query, right), the difference between the distances to an incorrect and a
correct neighbour; it is negative if the incorrect one is nearer. A step moves the weights by -rate * P g, where g is
the gradient of the batch loss and P the preconditioner of the optimiser (for Adam, the inverse root of the second
moment). Without a sample, g becomes the gradient of the loss on the rest of the batch, whose embeddings do not change.
The sample therefore changes the margin by -rate * <gradient of the margin, P (g - g without the sample)>, which is
exact in the limit of small rates. Batch norm statistics and Adam's moments are treated as constants. A loss that is a
mean gives more weight to the rest if a sample is left out; under such a loss the influences of a batch add up to nearly
0.

Reference:
    Pruthi et al. (2020), TracIn, Sec. 3, with the loss of a batch in place of a sum over samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call

from dmlcore.inspection.failure.answers import READ_TOGETHER
from dmlcore.pooling.base import at_least_float32
from dmlcore.spec.sections import NO_METHOD
from dmlcore.training import loop
from dmlcore.training.batches import Batch, embed
from dmlcore.training.errors import TrainingError
from dmlcore.training.objective import Tuples, seed_of
from dmlcore.training.state import TrainingState
from dmlcore.typing import Floats, Ints

Tensors = dict[str, Tensor]
STEP = 1e-3  # step of the finite difference, relative to the norm of the weights
MODEL, LOSS = "model.", "loss."  # prefixes that distinguish the parameters of the network from those of the loss


@dataclass(frozen=True, eq=False)
class StepInfluence:
    """Influence of the samples of one batch.

    Args:
        samples: Distinct sample indices (n,) of the batch.
        influence: Change (F, n) in the margin of each of F failures due to each sample.
        margins: Margins (F,) of the failures before the step.
    """

    samples: Ints
    influence: Floats
    margins: Floats


def step(state: TrainingState, number: int, cases: Tensor) -> StepInfluence:
    """Run training step `number` as `loop.step` does, and return the influence of each sample of its batch.

    Args:
        state: Training state before the step; `refuse` must accept it.
        number: Number of the step.
        cases: Inputs (3 F, ...) on the device: the queries of F failures, then a correct neighbour of each, then an
            incorrect neighbour of each.

    Raises:
        StepError: The loss or a gradient is not finite.
    """
    loop.begin(state, number)
    batch = state.batches.make(number, lambda indices: embed(state.model, state.data, indices, state.device))
    model, loss = _copy_trained(state.model), _copy_trained(state.loss)
    margins, gradients = _margins(state, cases)
    loop.step(state, number)

    factors = _factors(state)
    tangents = [{name: factors[name] * gradient for name, gradient in each.items()} for each in gradients]
    embeddings, moves = _moves(state, number, batch, model, tangents)
    samples = np.unique(batch.indices)
    batch = replace(batch, tuples=batch.tuples or _draw_tuples(state, number, embeddings, batch.labels))
    whole = _gradient(state, batch, loss, embeddings, None)
    rests = [_gradient(state, batch, loss, embeddings, int(sample)) for sample in samples]
    moved = torch.stack(moves).double()
    values = -torch.einsum("fbd,nbd->fn", moved, torch.stack([whole - rest for rest in rests]).double())
    return StepInfluence(samples, values.cpu().numpy(), margins.double().cpu().numpy())


def refuse(state: TrainingState) -> None:
    """Raise TrainingError if the training steps cannot be decomposed into contributions of single samples."""
    if state.spec.loss.memory:
        raise TrainingError(
            "The loss compares each batch with a memory of earlier batches, so steps are not independent"
        )
    if hasattr(state.loss.metric, "embed"):
        raise TrainingError("The loss of an ensemble combines the tested embeddings and passes no gradient to them")
    if state.spec.loss.start_weight:
        raise TrainingError(
            "The loss penalises changes from the initial embeddings, which cannot be decomposed by sample"
        )
    if state.spec.conditioning.neighbours:
        raise TrainingError(READ_TOGETHER)
    if state.spec.method.name != NO_METHOD:
        raise TrainingError(f"The effects of the method {state.spec.method.name} cannot be decomposed by sample")
    if getattr(state.loss.metric, "reads_pooled", False):
        raise TrainingError(
            "The loss also reads the features before the embedding, and steps are decomposed by embeddings"
        )
    if state.spec.pooling.zero_shot:
        raise TrainingError("The loss includes a zero-shot prediction, which is fitted to the whole batch")


def _copy_trained(module: nn.Module) -> Tensors:
    """Return copies of the trainable parameters and the buffers of a module, which a training step may change."""
    trained = {name: tensor for name, tensor in module.named_parameters() if tensor.requires_grad}
    return {name: tensor.detach().clone() for name, tensor in {**trained, **dict(module.named_buffers())}.items()}


def _names(state: TrainingState) -> dict[int, str]:
    """Return the names of the parameters that the next step trains, keyed by `id(parameter)`."""
    named = [(f"{MODEL}{name}", p) for name, p in state.model.named_parameters()]
    named += [(f"{LOSS}{name}", p) for name, p in state.loss.named_parameters()]
    return {id(parameter): name for name, parameter in named if parameter.requires_grad}


def _margins(state: TrainingState, cases: Tensor) -> tuple[Tensor, list[Tensors]]:
    """Return the margins (F,), computed in evaluation mode, and for each margin its gradients by parameter name."""
    parameters = [p for group in state.optimiser.param_groups for p in group["params"] if p.requires_grad]
    names = _names(state)
    state.model.eval()
    query, right, wrong = state.model(cases).unflatten(0, (3, -1))
    state.model.train()
    margins = torch.linalg.vector_norm(query - wrong, dim=1) - torch.linalg.vector_norm(query - right, dim=1)
    gradients = []
    for margin in margins:
        of_each = torch.autograd.grad(margin, parameters, retain_graph=True, allow_unused=True)
        gradients.append({names[id(p)]: g for p, g in zip(parameters, of_each, strict=True) if g is not None})
    return margins.detach(), gradients


def _factors(state: TrainingState) -> dict[str, Tensor | float]:
    """Return, for each parameter, the factor by which the optimiser multiplied its gradient in the last step.

    For Adam and RMSprop it is rate / (root of the second moment + epsilon). For SGD it is rate / (1 - momentum),
    because momentum carries a gradient over to the following steps. The minus sign of the descent step is left out.
    Clipping by norm is included; clipping of single entries and weight decay are not.
    """
    o, names = state.spec.optimiser, _names(state)
    clipped = 1.0
    if o.clip_norm and state.norm is not None:
        clipped = min(1.0, o.clip_norm / (float(state.norm) + 1e-6))
    factors: dict[str, Tensor | float] = {}
    for group in state.optimiser.param_groups:
        for parameter in group["params"]:
            if id(parameter) not in names:
                continue
            kept, rate = state.optimiser.state.get(parameter, {}), clipped * group["lr"]
            if "exp_avg_sq" in kept:
                correction = 1 - group["betas"][1] ** float(kept["step"])
                rate = rate / ((kept["exp_avg_sq"] / correction).sqrt() + group["eps"])
            elif "square_avg" in kept:
                rate = rate / (kept["square_avg"].sqrt() + group["eps"])
            elif group.get("momentum"):
                rate = rate / (1 - group["momentum"])
            factors[names[id(parameter)]] = rate
    return factors


def _moves(
    state: TrainingState, number: int, batch: Batch, weights: Tensors, tangents: list[Tensors]
) -> tuple[Tensor, list[Tensor]]:
    """Return the embeddings (B, D) of the batch before the step, and their derivative along each of `tangents`."""

    def embedded(moved: Tensors) -> Tensor:
        loop.begin(state, number)  # seeds dropout, so that each call uses the same masks
        embeddings: Tensor = functional_call(state.model, moved, (batch.inputs,))
        return embeddings

    moves = []
    with torch.no_grad():
        embeddings = at_least_float32(embedded(_clones(weights)))
        for tangent in tangents:
            along = {name: tangent[MODEL + name] for name in weights if MODEL + name in tangent}
            moves.append(_derivative(embedded, weights, along))
    return embeddings, moves


def _derivative(embedded: Callable[[Tensors], Tensor], weights: Tensors, along: Tensors) -> Tensor:
    """Return the directional derivative of embeddings when the weights move along `along`.

    Uses forward-mode differentiation, or a finite difference if a layer does not support it.
    """
    try:
        with forward_ad.dual_level():
            dual = {n: forward_ad.make_dual(w, along[n]) if n in along else w for n, w in _clones(weights).items()}
            moved = forward_ad.unpack_dual(embedded(dual))
        return torch.zeros_like(moved.primal) if moved.tangent is None else moved.tangent
    except (NotImplementedError, RuntimeError) as error:
        if "forward" not in str(error):
            raise
    return _difference(embedded, weights, along)


def _difference(embedded: Callable[[Tensors], Tensor], weights: Tensors, along: Tensors) -> Tensor:
    """Return a central difference that approximates the derivative of embeddings along a direction in weight space.

    The weights are displaced by STEP times their norm, which gives about three correct digits in float32.
    """
    length = nn.utils.get_total_norm(along.values())
    if not length > 0:
        return torch.zeros_like(embedded(_clones(weights)))
    reach = float(STEP * nn.utils.get_total_norm([weights[name] for name in along]) / length)
    ends = [
        embedded({n: w + sign * reach * along[n] if n in along else w for n, w in _clones(weights).items()})
        for sign in (1, -1)
    ]
    return (ends[0] - ends[1]) / (2 * reach)


def _clones(tensors: Tensors) -> Tensors:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def _draw_tuples(state: TrainingState, number: int, embeddings: Tensor, labels: Tensor) -> Tuples | None:
    """Return the tuples that the miner of the loss draws in step `number`; None if the loss has no random miner."""
    if state.loss.miner is None or not state.loss.miner.miner.random:
        return None
    random = torch.Generator().manual_seed(seed_of(state.spec.seed, "miner", number))
    tuples: Tuples | None = state.loss.miner(embeddings, labels, generator=random)
    return tuples


def _gradient(state: TrainingState, batch: Batch, weights: Tensors, embeddings: Tensor, out: int | None) -> Tensor:
    """Return the gradient of the batch loss with respect to embeddings (B, D), leaving out sample `out` if given."""
    rows = torch.from_numpy(np.flatnonzero(batch.indices != out)).to(embeddings.device)
    own = _clones(weights)  # copies, because the loss may update running means
    start = embeddings.detach().clone().requires_grad_()
    tuples = batch.tuples if out is None or batch.tuples is None else _drop_tuples(batch.tuples, rows, len(embeddings))
    loss = functional_call(state.loss, own, (start[rows], batch.labels[rows], None, tuples))
    gradient = torch.autograd.grad(loss, start, allow_unused=True)[0] if loss.requires_grad else None
    return torch.zeros_like(start) if gradient is None else gradient


def _drop_tuples(tuples: Tuples, rows: Tensor, count: int) -> Tuples:
    """Return the tuples whose members are all in `rows`, renumbered as positions in `rows`."""
    place = torch.full((count,), -1, device=rows.device)
    place[rows] = torch.arange(len(rows), device=rows.device)
    moved = torch.stack([place[each] for each in tuples])
    return tuple(moved[:, (moved >= 0).all(0)])
