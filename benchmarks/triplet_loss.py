"""Batch triplet losses of the catalogue, forward and backward, compared with PML's TripletMarginLoss.

The input is random unit embeddings in float32 with 8 samples per class, from which all valid triplets are used. Each
case runs in its own process, which reports the median time of the repetitions, and peak resident memory minus the
memory before them. PML minimises the same ranking loss (margin 0.1) over the same triplets.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time

from benchmarks.harness import command_line, machine, memory, reset_peak

RIVAL = "PML TripletMarginLoss"


def measure(job: tuple[str, int, int, int, int]) -> tuple[float, float]:
    """Return the median seconds and the peak memory in MiB of a forward and backward pass of one loss."""
    name, batch, dim, threads, repeats = job
    import torch

    from dmlcore import losses

    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)
    points = torch.nn.functional.normalize(torch.randn(batch, dim, generator=generator))
    labels = torch.arange(batch) // 8
    if name == RIVAL:
        from pytorch_metric_learning.losses import TripletMarginLoss

        loss = TripletMarginLoss(margin=0.1)
    else:
        loss = losses.create(name)

    def step(x: torch.Tensor, y: torch.Tensor) -> float:
        leaf = x.clone().requires_grad_()
        began = time.perf_counter()
        loss(leaf, y).backward()
        return time.perf_counter() - began

    step(points[:32], labels[:32])
    before = reset_peak()
    first = step(points, labels)
    peak = (memory("VmHWM") - before) / 2**20
    times = [first] + [step(points, labels) for _ in range(repeats - 1)]
    return statistics.median(times[1:] or times), peak


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=11)
    arguments = parser.parse_args()
    from dmlcore import losses

    print(f"{machine('torch', 'pytorch-metric-learning')}, {arguments.threads} threads; ", end="")
    print(f"dim {arguments.dim}, 8 per class, median of {arguments.repeats - 1}")
    context = multiprocessing.get_context("spawn")
    for batch in arguments.batches:
        results = {}
        for name in [RIVAL, *losses.names()]:
            with context.Pool(1) as pool:
                job = (name, batch, arguments.dim, arguments.threads, arguments.repeats)
                results[name] = pool.apply(measure, (job,))
        seconds, mebibytes = results[RIVAL]
        print(f"\nbatch {batch}: {batch * 7 * (batch - 8)} triplets")
        for name, (s, m) in results.items():
            ratios = f"{seconds / s:5.1f} x faster  {mebibytes / max(m, 0.1):5.1f} x less memory"
            print(f"  {name:24s} {s * 1e3:8.1f} ms  {m:7.1f} MiB   {ratios}")


if __name__ == "__main__":
    main()
