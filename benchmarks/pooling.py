"""The whole generalized sum pooling layer, forward and backward, compared with other solvers.

Feature maps are float32, and all variants use the same costs, so that only the solver differs. Baselines: (a) 100
sweeps of the published iteration in a custom autograd Function with our closed-form backward pass; (b) autodiff through
100 sweeps on the full plan and, for comparison, on the soft minima alone; (c) POT's `ot.sinkhorn`, image by image, with
the prototypes and the left-out mass as m + 1 rows. The marginals of these rows are those of our solution, so that the
solutions are equal.

Rounds are interleaved; the ratio is the median over the rounds. With --threads 1 the clock is CPU time, which other
load on the machine affects less; with more threads it is the wall clock. Memory is measured as the bytes that autograd
saves for the backward pass, and as the peak resident memory of a forward and backward pass in its own process. Finally
the script prints the accuracy in float32 and the share of the pooling in a training step of a ResNet-50.

POT is optional. To include it: pip install --no-deps --target /tmp/pot pot; PYTHONPATH=/tmp/pot python ...
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness import command_line, machine, memory, ratios, reset_peak, turns, verdict
from dmlcore import pooling
from dmlcore.models import backbones
from dmlcore.pooling.transport import _Transport, pooling_weights, sweep, sweeps, transport

MU, EPSILON, SWEEPS = 0.3, 5.0, 100
clock = time.perf_counter
Solver = Callable[[Tensor, float, float], tuple[Tensor, Tensor]]


class _Swept(torch.autograd.Function):
    """Baseline (a): 100 sweeps in the forward pass, the closed form in the backward pass."""

    @staticmethod
    def forward(ctx: Any, cost: Tensor, mu: float, epsilon: float) -> tuple[Tensor, Tensor]:
        scaled = -epsilon * cost
        soft_min = scaled.logsumexp(-2)
        a = torch.zeros_like(soft_min[..., :1])
        for _ in range(SWEEPS):
            log_rho, a = sweep(a, soft_min, mu)
        rho, pi = log_rho.exp(), torch.exp(a[..., None] + scaled + log_rho[..., None, :])
        ctx.save_for_backward(cost, rho, pi)
        ctx.set_materialize_grads(False)
        ctx.mu, ctx.epsilon = mu, epsilon
        return rho, pi

    backward = staticmethod(_Transport.backward)


def swept(cost: Tensor, mu: float, epsilon: float) -> tuple[Tensor, Tensor]:
    """Solve the transport with baseline (a): 100 sweeps in the forward pass, the closed form in the backward pass."""
    solved: tuple[Tensor, Tensor] = _Swept.apply(cost, mu, epsilon)
    return solved


def full_plan(cost: Tensor, mu: float, epsilon: float) -> tuple[Tensor, Tensor]:
    """Solve the transport with baseline (b): autodiff through 100 sweeps on the full plan."""
    n, scaled = cost.shape[-1], -epsilon * cost
    a = torch.zeros_like(cost[..., :1, 0])
    for _ in range(SWEEPS):
        log_rho = torch.nn.functional.logsigmoid(-(a[..., None] + scaled).logsumexp(-2))
        log_rho = log_rho - torch.tensor(float(n)).log()
        a = torch.tensor(mu).log() - (scaled + log_rho[..., None, :]).flatten(-2).logsumexp(-1, keepdim=True)
    return log_rho.exp(), torch.exp(a[..., None] + scaled + log_rho[..., None, :])


def pot(cost: Tensor, mu: float, epsilon: float) -> tuple[Tensor, Tensor]:
    """Solve the transport with baseline (c): POT on (m + 1) x n problems, image by image.

    Gradients are computed by autodiff through POT's iterations.
    """
    import ot

    with torch.no_grad():
        rho, pi = transport(cost, mu, epsilon)
        rows = torch.cat((pi.sum(-1), rho.sum(-1, keepdim=True)), dim=-1)
        rows = rows / rows.sum(-1, keepdim=True)
        columns = torch.full_like(rho[0], 1 / rho.shape[-1])
    plans = []
    for image, row in zip(cost, rows, strict=True):
        with_rest = torch.cat((image, torch.zeros_like(image[:1])))
        plans.append(ot.sinkhorn(row, columns, with_rest, reg=1 / epsilon, numItermax=SWEEPS, warn=False))
    plan = torch.stack(plans)
    return plan[:, -1], plan[:, :-1]


SOLVERS: dict[str, Solver] = {
    "ours, exact": transport,
    "(a) 100 sweeps, our backward": swept,
    "(b) autodiff, full plan": full_plan,
    "    autodiff, soft minima": lambda cost, mu, epsilon: sweeps(cost, mu, epsilon, SWEEPS),
    "(c) POT sinkhorn per image": pot,
}
GOALS = {"(a) 100 sweeps, our backward": 1 / 0.75, "(b) autodiff, full plan": 5, "(c) POT sinkhorn per image": 50}


def problem(arguments: argparse.Namespace) -> tuple[Tensor, Tensor, Tensor]:
    """Return random feature maps and prototypes, and a random gradient of the loss at the pooled vectors."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(arguments.batch, arguments.channels, arguments.side, arguments.side, generator=generator)
    prototypes = torch.randn(arguments.prototypes, arguments.channels, generator=generator)
    return (
        (features / arguments.channels**0.5).requires_grad_(),
        (prototypes / arguments.channels**0.5).requires_grad_(),
        torch.randn(arguments.batch, arguments.channels, generator=generator),
    )


def forward(solver: Solver, features: Tensor, prototypes: Tensor) -> Tensor:
    """Pool features with the formula of GeneralizedSumPooling and the given solver."""
    F = features.flatten(2)
    rho, _ = solver(pooling.prototype_costs(F.mT, prototypes), MU, EPSILON)
    return (F @ pooling_weights(rho, MU)[..., None])[..., 0]


def step(solver: Solver, features: Tensor, prototypes: Tensor, slope: Tensor) -> None:
    """Perform one forward and backward pass of the layer; `slope` is the gradient at the pooled vectors."""
    features.grad = prototypes.grad = None
    forward(solver, features, prototypes).backward(slope)


def saved_bytes(solver: Solver, features: Tensor, prototypes: Tensor) -> int:
    """Return the total size in bytes of the distinct tensors that autograd saves for the backward pass."""
    kept: dict[int, int] = {}

    def pack(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        forward(solver, features, prototypes)
    return sum(kept.values())


def peak_of(job: tuple[str, argparse.Namespace]) -> float:
    """Return the peak memory in MiB of one forward and backward pass, minus the memory before it."""
    name, arguments = job
    torch.set_num_threads(arguments.threads)
    given = problem(arguments)
    small = (given[0][:1, :, :1, :1].detach().requires_grad_(), given[1], given[2][:1])
    step(SOLVERS[name], *small)
    before = reset_peak()
    step(SOLVERS[name], *given)
    return (memory("VmHWM") - before) / 2**20


def against_rivals(arguments: argparse.Namespace) -> None:
    """Print the time and memory of all solvers, and how much their results differ."""
    names = [n for n in SOLVERS if find_spec("ot") or "POT" not in n]
    given = problem(arguments)
    exact = forward(transport, given[0].double(), given[1].double()).detach()
    tasks = {name: partial(step, SOLVERS[name], *given) for name in names}
    times = turns(tasks, arguments.rounds, warm=2, twice=True, clock=clock)
    ours = times["ours, exact"]
    context = multiprocessing.get_context("spawn")
    print(
        f"\nlayer, forward + backward: batch {arguments.batch} of {arguments.side}x{arguments.side}x"
        f"{arguments.channels}, {arguments.prototypes} prototypes, mu {MU}, epsilon {EPSILON}, float32, "
        f"median of {arguments.rounds} interleaved rounds, {'CPU' if arguments.threads == 1 else 'wall clock'} time",
        flush=True,
    )
    for name in names:
        taken = times[name]
        ratio = statistics.median(ratios(taken, ours))
        with context.Pool(1) as pool:
            peak = pool.apply(peak_of, ((name, arguments),))
        saved = saved_bytes(SOLVERS[name], given[0], given[1]) / 2**20
        apart = (forward(SOLVERS[name], given[0], given[1]).detach().double() - exact).abs().max()
        goal = ""
        if name in GOALS:
            goal = f"   goal {GOALS[name]:.2f} x: {verdict(ratio >= GOALS[name])}"
        print(
            f"  {name:30s} median {statistics.median(taken):8.2f} ms  best {min(taken):8.2f} ms  "
            f"ours is {ratio:6.2f} x faster   saved {saved:6.2f} MiB  peak {peak:6.1f} MiB  "
            f"off by {apart:.1e}{goal}",
            flush=True,
        )
    if len(names) < len(SOLVERS):
        print("  (c) POT is not installed: see --help")


def hard_costs() -> dict[str, Tensor]:
    """Return three sets of costs (..., 64, 49) in float32, by description.

    The sets are uniform random costs, costs of random features, and costs of 49 features of which 15 equal a prototype
    and 34 are identical.
    """
    generator = torch.Generator().manual_seed(0)
    w = torch.nn.functional.normalize(torch.randn(64, 128, generator=generator))
    random = torch.randn(8, 49, 128, generator=generator) / 128**0.5
    blocks = torch.cat((w[:15].expand(8, -1, -1), random[:, :1].expand(-1, 34, -1)), dim=1)
    return {
        "uniform": 2 * torch.rand(8, 64, 49, generator=generator),
        "random features": pooling.prototype_costs(random, w),
        "15 of 49 on a prototype": pooling.prototype_costs(blocks, w),
    }


def accuracy() -> None:
    """Print the largest deviation from the converged float64 solution, for each set of `hard_costs` and two solvers."""
    epsilons = (0.1, 0.5, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
    print("\nlargest deviation of plan, remainder and weights from the converged float64 solution, mu 0.05 to 0.95")
    print(f"  {'epsilon':26s}" + "".join(f"{e:>9g}" for e in epsilons) + "      worst")
    for costs_name, cost in hard_costs().items():
        for solver_name, solve, dtype in (
            ("ours, float32", transport, torch.float32),
            ("100 sweeps, float64", sweeps, torch.float64),
        ):
            row = []
            for epsilon in epsilons:
                worst = 0.0
                for mu in (0.05, 0.2, 0.3, 0.5, 0.9, 0.95):
                    rho, pi = transport(cost.double(), mu, epsilon)
                    other_rho, other_pi = (x.double() for x in solve(cost.to(dtype), mu, epsilon))
                    gaps = (other_rho - rho, other_pi - pi, (other_rho - rho) / mu)
                    worst = max(worst, *(float(gap.abs().max()) for gap in gaps))
                row.append(worst)
            line = "".join(f"{x:9.1e}" for x in row)
            print(f"  {costs_name}, {solver_name}".ljust(46) + line + f"  {max(row):9.1e}", flush=True)


def share_of_a_step(arguments: argparse.Namespace) -> None:
    """Print the time that generalized sum pooling adds to a ResNet-50 training step compared with average pooling."""
    torch.manual_seed(0)
    backbone = backbones.create("resnet50")
    heads = {
        "average": pooling.EmbeddingHead("gap", backbone.out_channels, 128),
        "generalized sum": pooling.EmbeddingHead("gsp", backbone.out_channels, 128, memory=0),
    }
    images = torch.randn(arguments.images, 3, 224, 224)
    features = backbone(images).detach().requires_grad_()
    parameters = [*backbone.parameters(), *heads["average"].parameters()]
    optimiser = torch.optim.SGD(parameters, lr=0.0)

    def train() -> None:
        optimiser.zero_grad()
        heads["average"](backbone(images)).square().sum().backward()
        optimiser.step()

    def head(name: str) -> None:
        features.grad = None
        heads[name].zero_grad()
        heads[name](features).square().sum().backward()

    whole, alone = [], {name: [] for name in heads}
    for _ in range(arguments.steps):
        began = clock()
        train()
        whole.append(clock() - began)
        for _ in range(10):
            for name in heads:
                began = clock()
                head(name)
                alone[name].append(clock() - began)
    seconds = {name: statistics.median(taken) for name, taken in alone.items()}
    added = (seconds["generalized sum"] - seconds["average"]) / statistics.median(whole)
    print(
        f"\nResNet-50, 224 px, batch {arguments.images}: training step {statistics.median(whole):.2f} s; head with "
        f"average {seconds['average'] * 1e3:.1f} ms, with generalized sum {seconds['generalized sum'] * 1e3:.1f} ms: "
        f"it adds {100 * added:.2f} % (goal 5 %: {verdict(added <= 0.05)})"
    )


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--side", type=int, default=7)
    parser.add_argument("--channels", type=int, default=128)
    parser.add_argument("--prototypes", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--images", type=int, default=8, help="batch of the ResNet-50")
    parser.add_argument("--steps", type=int, default=5, help="training steps of the ResNet-50; 0 skips this part")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.threads == 1:
        global clock
        clock = time.thread_time
    print(f"{machine('torch', *['pot'] * bool(find_spec('ot')))}, {arguments.threads} threads")
    against_rivals(arguments)
    accuracy()
    if arguments.steps:
        share_of_a_step(arguments)


if __name__ == "__main__":
    main()
