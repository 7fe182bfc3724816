"""What each sample of one training step did to the margin of failures, to first order in the learning rate.

The margin of a failure is d(query, wrong) - d(query, right): below 0 the wrong neighbour is the nearer one. A step
moves the weights by -rate * P g, g the gradient of the loss of its batch, P what the optimiser makes of a gradient (the
inverse root of Adam's second moment). Without a sample g is that of the loss on the rest of the batch, whose embeddings
stay; so the sample changes the margin by -rate * <gradient of the margin, P (g - g without it)>, exact in the limit of
small rates. Batch norm's statistics and Adam's moments are taken as they were. A loss that is a mean weighs the rest
more where a sample is out, so that under such a loss the influences of a batch add up to nearly 0.

Source: Pruthi et al. 2020 (TracIn), Sec. 3, with the loss of a batch in place of a sum over samples.
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
from dmlcore.training import loop
from dmlcore.training.batches import Batch, embed
from dmlcore.training.errors import TrainingError
from dmlcore.training.objective import Tuples, seed_of
from dmlcore.training.state import TrainingState
from dmlcore.typing import Floats, Ints

Tensors = dict[str, Tensor]
STEP = 1e-3  # of a difference, over the length of the weights
MODEL, LOSS = "model.", "loss."  # what a name of a parameter begins with


@dataclass(frozen=True, eq=False)
class StepInfluence:
    """Samples (n,) of a batch, each once, what each did to the margin of each failure (F, n), margins (F,) before."""

    samples: Ints
    influence: Floats
    margins: Floats


def step(state: TrainingState, number: int, cases: Tensor) -> StepInfluence:
    """Make step `number` as `loop.step` does, and tell what each sample of its batch did.

    cases: (3 F, ...) inputs on the device: the queries of F failures, their right, their wrong neighbours. Raises
    StepError, and TrainingError for what `refuse` refuses.
    """
    loop.begin(state, number)
    batch = state.batches.make(number, lambda indices: embed(state.model, state.data, indices, state.device))
    model, loss = _copied(state.model), _copied(state.loss)
    margins, gradients = _margins(state, cases)
    loop.step(state, number)

    factors = _factors(state)
    tangents = [{name: factors[name] * gradient for name, gradient in each.items()} for each in gradients]
    embeddings, moves = _moves(state, number, batch, model, tangents)
    samples = np.unique(batch.indices)
    batch = replace(batch, tuples=batch.tuples or _drawn(state, number, embeddings, batch.labels))
    whole = _gradient(state, batch, loss, embeddings, None)
    rests = [_gradient(state, batch, loss, embeddings, int(sample)) for sample in samples]
    moved = torch.stack(moves).double()
    values = -torch.einsum("fbd,nbd->fn", moved, torch.stack([whole - rest for rest in rests]).double())
    return StepInfluence(samples, values.cpu().numpy(), margins.double().cpu().numpy())


def refuse(state: TrainingState) -> None:
    """Raise TrainingError for a training run whose steps cannot be taken apart by sample."""
    if state.spec.loss.memory:
        raise TrainingError("The loss compares each batch with a memory of earlier ones, so no step stands by itself")
    if hasattr(state.loss.metric, "embed"):
        raise TrainingError("The loss of an ensemble joins the embeddings that are tested, and lets no gradient by")
    if state.spec.loss.start_weight:
        raise TrainingError("Embeddings are held to those of the start, a part of the loss that is not taken apart")
    if state.spec.conditioning.neighbours:
        raise TrainingError(READ_TOGETHER)
    if getattr(state.loss.metric, "reads_pooled", False):
        raise TrainingError("The loss reads the features before the embedding too, and a step is told by embeddings")
    if state.spec.pooling.zero_shot:
        raise TrainingError("The loss has a zero-shot prediction in it, which is fitted to the whole batch at once")


def _copied(module: nn.Module) -> Tensors:
    """What a step may change of it, as it is now."""
    trained = {name: tensor for name, tensor in module.named_parameters() if tensor.requires_grad}
    return {name: tensor.detach().clone() for name, tensor in {**trained, **dict(module.named_buffers())}.items()}


def _names(state: TrainingState) -> dict[int, str]:
    """The name of each parameter that the next step trains."""
    named = [(f"{MODEL}{name}", p) for name, p in state.model.named_parameters()]
    named += [(f"{LOSS}{name}", p) for name, p in state.loss.named_parameters()]
    return {id(parameter): name for name, parameter in named if parameter.requires_grad}


def _margins(state: TrainingState, cases: Tensor) -> tuple[Tensor, list[Tensors]]:
    """The margins (F,) by the weights as they are, in evaluation mode, and the gradient of each by name."""
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
    """What the step that was just made multiplied a gradient by, for each parameter; minus the sign.

    Adam and RMSprop: rate / (root of the second moment + epsilon); SGD: rate / (1 - momentum), as a gradient goes on in
    the steps that follow. Clipping to a norm counts, clipping of single entries does not; nor does weight decay.
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
    """Embeddings (B, D) of the batch by the weights before the step, and how they move along each tangent."""

    def embedded(moved: Tensors) -> Tensor:
        loop.begin(state, number)  # the same dropout each time
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
    """How embeddings move along a tangent: by forward derivatives, or a difference where a layer knows none."""
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
    """The central difference over a thousandth of the length of the weights, to about three digits in float32."""
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


def _drawn(state: TrainingState, number: int, embeddings: Tensor, labels: Tensor) -> Tuples | None:
    """The tuples of a miner that draws by chance, which stay those of the step; None of one that can choose again."""
    if state.loss.miner is None or not state.loss.miner.miner.random:
        return None
    random = torch.Generator().manual_seed(seed_of(state.spec.seed, "miner", number))
    tuples: Tuples | None = state.loss.miner(embeddings, labels, generator=random)
    return tuples


def _gradient(state: TrainingState, batch: Batch, weights: Tensors, embeddings: Tensor, out: int | None) -> Tensor:
    """Gradient of the loss without the sample `out` by the embeddings (B, D)."""
    rows = torch.from_numpy(np.flatnonzero(batch.indices != out)).to(embeddings.device)
    own = _clones(weights)  # running means are of the step alone
    start = embeddings.detach().clone().requires_grad_()
    tuples = batch.tuples if out is None or batch.tuples is None else _left(batch.tuples, rows, len(embeddings))
    loss = functional_call(state.loss, own, (start[rows], batch.labels[rows], None, tuples))
    gradient = torch.autograd.grad(loss, start, allow_unused=True)[0] if loss.requires_grad else None
    return torch.zeros_like(start) if gradient is None else gradient


def _left(tuples: Tuples, rows: Tensor, count: int) -> Tuples:
    """The tuples of the rows that are left, by their places among these."""
    place = torch.full((count,), -1, device=rows.device)
    place[rows] = torch.arange(len(rows), device=rows.device)
    moved = torch.stack([place[each] for each in tuples])
    return tuple(moved[:, (moved >= 0).all(0)])
