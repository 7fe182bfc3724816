"""Single checks on a GPU of one or two minutes each, run by `benchmarks.gpu_checklist`; each prints one JSON object.

    python -m benchmarks.gpu_checks resume|strict|waits|moved|times|nccl|parts [--small]

resume: a run that is stopped and resumed ends with the same bytes as two uninterrupted runs. strict: losses, miners and
poolings that lack a deterministic kernel. waits: host-device synchronisations per step and their source lines. moved: a
run that was started on the CPU continues on the GPU. times: writing a checkpoint, embedding in both precisions, exact
search. nccl: collective operations between processes, one process per GPU. parts: times of the parts of a training
step.
--small tests the code without a GPU.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.gpu import idle, stored
from benchmarks.harness import command_line
from benchmarks.train_step import bare_step
from dmlcore import losses, mining, pooling, processes
from dmlcore.metrics import retrieval
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import batches, build, evaluation, loop
from dmlcore.training.checkpoint_writer import CheckpointWriter
from dmlcore.typing import Ints
from tests.training import together

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SPEC = RunSpec().with_overrides(
    [
        *("model.name=resnet18", "model.embedding_dim=128", "loss.name=distance_sensitive", "batch.classes=8"),
        *("batch.samples=4", "data.validation=none", "schedule.steps=60", "schedule.checkpoint_every=20"),
        *("data.crop=resized", "compute.precision=bfloat16"),
    ]
)
VARIANTS = {
    "plain": [],
    "gsp": ["pooling.name=gsp", "pooling.prototypes=8", "pooling.memory=32"],
    "miner": ["miner.name=semi_hard"],
    "proxies": ["loss.name=proxy_nca"],
    "rmsprop": ["optimiser.name=rmsprop"],
    "sgd, warm-up": ["optimiser.name=sgd", "schedule.warm_up=20"],
}


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    if DEVICE.type == "cpu" and not arguments.small:
        print(json.dumps({"not run": "this machine has no usable CUDA device"}))
        return
    print(json.dumps(CHECKS[arguments.check](arguments.small)))


def resume(small: bool) -> dict[str, Any]:
    """Compare by digest the last checkpoints of two uninterrupted runs and of one that was stopped and resumed."""
    answers: dict[str, Any] = {}
    for name, overrides in VARIANTS.items():
        spec = _sized(SPEC.with_overrides(overrides), small)
        with tempfile.TemporaryDirectory() as folder:
            store = RunStore(folder)
            digests = [_digest(_trained(store, spec)) for _ in range(2)]
            stopped = _trained(store, spec, stop_at=spec.schedule.steps // 2)
            answers[name] = {
                "again": digests[0] == digests[1],
                "resumed": digests[0] == _digest(_trained(store, spec, stopped)),
            }
    return answers


def moved(small: bool) -> dict[str, Any]:
    """Return the final state of runs that were started on the CPU and resumed on the device, by optimiser."""
    answers = {}
    for name in ("adam", "sgd", "rmsprop"):
        spec = _sized(SPEC.with_overrides([f"optimiser.name={name}", "compute.precision=float32"]), True)
        with tempfile.TemporaryDirectory() as folder:
            threads, cuda = torch.get_num_threads(), torch.cuda.is_available
            torch.cuda.is_available = lambda: False  # simulate a machine without a GPU
            run = _trained(RunStore(folder), spec, stop_at=3)
            torch.cuda.is_available = cuda
            torch.set_num_threads(threads)
            _trained(RunStore(folder), spec, run)
            answers[name] = f"{run.state().state}: {run.state().message}"
    return answers


def strict(small: bool) -> dict[str, Any]:
    """Return the losses, miners and poolings that lack a deterministic forward or backward kernel on this device."""
    build.prepare_device("auto", torch.get_num_threads())
    torch.use_deterministic_algorithms(True)
    labels = torch.arange(32, device=DEVICE) // 4
    refused: dict[str, str] = {}

    def attempt(name: str, compute: Callable[[], object]) -> None:
        try:
            compute()
        except RuntimeError as error:
            refused[name] = str(error).partition("\n")[0][:160]

    def points() -> torch.Tensor:
        return torch.randn(32, 24, device=DEVICE, requires_grad=True)

    for name in losses.LOSSES:
        loss = losses.for_training(name, classes=8, embedding_dim=24).to(DEVICE)
        attempt(f"loss {name}", lambda loss=loss: loss(points(), labels).backward())
    for name in mining.names():
        attempt(f"miner {name}", lambda name=name: mining.create(name)(points(), labels, generator=torch.Generator()))
    for name in pooling.names():
        layer = pooling.create(name, 64).to(DEVICE)
        attempt(
            f"pooling {name}",
            lambda layer=layer: layer(torch.randn(16, 64, 7, 7, device=DEVICE, requires_grad=True)).sum().backward(),
        )
    torch.use_deterministic_algorithms(False)
    return {"checked": len(losses.LOSSES) + len(mining.names()) + len(pooling.names()), "refused": refused}


def waits(small: bool) -> dict[str, Any]:
    """Count the host-device synchronisations per step that PyTorch's debug mode reports, by source line."""
    answers: dict[str, Any] = {}
    for name, overrides in VARIANTS.items():
        spec = _sized(
            SPEC.with_overrides([*overrides, "schedule.measure_every=1000", "schedule.checkpoint_every=1000"]), small
        )
        state = build.build(spec, _data(small), build.prepare_device("auto", torch.get_num_threads()))
        state.model.train()
        steps = range(1, spec.schedule.steps + 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for step in steps:
                if step == steps[-1] // 2 and DEVICE.type == "cuda":
                    torch.cuda.set_sync_debug_mode("warn")
                loop.step(state, step)
        if DEVICE.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")
        lines = Counter(f"{w.filename.rpartition('/')[2]}:{w.lineno}" for w in caught if "synchroniz" in str(w.message))
        answers[name] = {
            "per step": round(sum(lines.values()) / (len(steps) - steps[-1] // 2), 2),
            "lines": dict(lines.most_common(8)),
        }
    return answers


def times(small: bool) -> dict[str, Any]:
    """Return the median seconds over three repetitions of writing a checkpoint, of embedding and of exact search.

    For a checkpoint, both the blocking time and the time until the file is written are returned.
    """
    spec = _sized(SPEC.with_overrides(["model.name=resnet50", "model.embedding_dim=512"]), small)
    state = build.build(spec, _data(small), build.prepare_device("auto", torch.get_num_threads()))
    state.model.train()
    for step in range(1, 4):
        loop.step(state, step)
    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        run = RunStore(folder).create(spec)
        with run.lock(), CheckpointWriter(run, state.device) as writer:
            answers["checkpoint, training blocked"] = _median(lambda: writer.save(state, 0), before=writer.wait)
            answers["checkpoint, until written"] = _median(lambda: (writer.save(state, 0), writer.wait()))
    for precision in ("float32", "bfloat16"):
        seconds = _median(
            lambda p=precision: evaluation.embed(state.model, state.data, "train", state.device, precision=p)
        )
        answers[f"images embedded per second, {precision}"] = round(len(state.data.splits["train"]) / seconds, 1)
    count, dimensions = (600, 32) if small else (60_502, 512)
    embeddings = torch.nn.functional.normalize(
        torch.randn(count, dimensions, generator=torch.Generator().manual_seed(0))
    )
    labels = np.arange(count) // 5
    for ks in ((1, 10), (1, 10, 100, 1000)):
        if count > max(ks):
            answers[f"search {count} x {dimensions}, ks {ks}"] = _median(
                lambda ks=ks: retrieval(embeddings, labels, ks=ks, device=DEVICE)
            )
    if DEVICE.type == "cuda":
        answers["GiB reserved at the peak"] = round(torch.cuda.max_memory_reserved() / 2**30, 2)
    return answers


def parts(small: bool) -> dict[str, Any]:
    """Return the milliseconds of a training step of ResNet-50 (227 px, batch 112, bfloat16) and of its components.

    Components are removed from the step one by one to time them. From a profiler, the result also contains the device
    time, the number of kernels, and the host time to launch them, each per step.
    """
    spec = _sized(
        SPEC.with_overrides(["model.name=resnet50", "model.embedding_dim=512", "batch.classes=28", "batch.samples=4"]),
        small,
    )
    data = stored(32, 32 if small else 227)
    state = build.build(spec, data, build.prepare_device("auto", torch.get_num_threads()))
    state.model.train()
    numbers = itertools.count(1)
    count, blocks = (2, 2) if small else (20, 2)

    def milliseconds(call: Callable[[], object]) -> float:
        for _ in range(count // 2):
            call()
        seconds = []
        for _ in range(blocks):
            began = idle()
            for _ in range(count):
                call()
            seconds.append((idle() - began) / count)
        return round(1e3 * min(seconds), 2)

    def step(objective: Callable[..., torch.Tensor] | None = None) -> None:
        loop.step(state, next(numbers), objective)

    def plain(embeddings: torch.Tensor, *_: object) -> torch.Tensor:
        return embeddings.sum()

    answers: dict[str, Any] = {"per step": milliseconds(step)}
    answers["reading a batch"] = milliseconds(lambda: state.batches._read(next(numbers)))
    batch = state.batches.make(next(numbers), lambda indices: np.empty(0, np.float32))
    read = state.batches._read(1)
    answers["preparing the batch read"] = milliseconds(lambda: _remade(state, *read))
    with mock.patch.object(state.batches, "make", return_value=batch):
        answers["step with a ready batch"] = milliseconds(step)
        answers["also without a loss"] = milliseconds(lambda: step(plain))
        deferred, state.finite_check = state.finite_check, None
        with mock.patch.object(loop, "_require_finite"):
            answers["also without the NaN check"] = milliseconds(lambda: step(plain))
        state.finite_check = deferred
    answers["bare step"] = milliseconds(bare_step(state, plain=False))
    activities = [torch.profiler.ProfilerActivity.CPU]
    activities += [torch.profiler.ProfilerActivity.CUDA] if DEVICE.type == "cuda" else []
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(count):
            step()
        idle()
    rows = profile.key_averages()
    kernels = [row for row in rows if row.device_type != torch.autograd.DeviceType.CPU]
    answers["device computes"] = round(sum(row.self_device_time_total for row in kernels) / 1e3 / count, 2)
    answers["kernels"] = {
        row.key[:70]: [round(row.self_device_time_total / 1e3 / count, 2), row.count // count]
        for row in sorted(kernels, key=lambda row: -row.self_device_time_total)[:24]
    }
    host = [row for row in rows if row.device_type == torch.autograd.DeviceType.CPU]
    answers["host launches"] = round(sum(row.self_cpu_time_total for row in host) / 1e3 / count, 2)
    answers["host"] = {
        row.key[:70]: [round(row.self_cpu_time_total / 1e3 / count, 2), row.count // count]
        for row in sorted(host, key=lambda row: -row.self_cpu_time_total)[:24]
    }
    return answers


def _remade(state: Any, indices: Ints, gathered: batches.Gathered) -> None:
    batches.augment(gathered, state.data.inputs.shape[-1], state.spec.data, 1, state.device)
    batches.upload(state.data.labels[indices], state.device)


def nccl(small: bool) -> dict[str, Any]:
    """Check collective operations between processes (gather, reduce and broadcast), with one process per GPU.

    With a single GPU, the only process communicates with itself.
    """
    count = 1 if small else torch.cuda.device_count()
    with tempfile.TemporaryDirectory() as folder:
        together.run_together(count, _exchange, Path(folder) / "result.json", small)
        return {"processes": count, **json.loads((Path(folder) / "result.json").read_text())}


def _exchange(file: Path, small: bool) -> None:
    device = build.prepare_device("cpu" if small else "cuda", 1)
    rank, count = processes.rank(), torch.distributed.get_world_size()
    own = torch.full((3,), 1.0 + rank, device=device)
    rows = [torch.empty_like(own) for _ in range(count)]
    torch.distributed.all_gather(rows, own)
    torch.distributed.all_reduce(own)
    word = torch.full((2,), 7.0 * (rank == 0), device=device)
    torch.distributed.broadcast(word, 0)
    on_cpu = torch.ones(1)
    torch.distributed.all_reduce(on_cpu)  # a tensor on the CPU, reduced by gloo in the same process group
    if rank == 0:
        right = [row.tolist() == [1.0 + i] * 3 for i, row in enumerate(rows)]
        right += [own.tolist() == [count * (count + 1) / 2] * 3, word.tolist() == [7, 7], on_cpu.item() == count]
        file.write_text(json.dumps({"right": all(right), "group": torch.distributed.get_backend_config()}))


def _median(call: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    seconds = []
    for _ in range(3):
        before()
        began = idle()
        call()
        seconds.append(idle() - began)
    return round(statistics.median(seconds), 4)


def _sized(spec: RunSpec, small: bool) -> RunSpec:
    tiny = [
        "model.name=conv4_32",
        "batch.classes=2",
        "batch.samples=2",
        "schedule.steps=8",
        "schedule.checkpoint_every=3",
    ]
    return spec.with_overrides([*tiny, "schedule.warm_up=0"]) if small else spec


def _data(small: bool) -> Any:
    return stored(8, 32 if small else 227)


def _trained(store: RunStore, spec: RunSpec, run: Run | None = None, stop_at: int = 0) -> Run:
    run = run or store.create(spec)
    steps = iter(range(1, 10_000))
    with run.lock():
        run.update(state="queued")
        data = _data(spec.model.name.startswith("conv"))
        state = loop.train(run, dataset=data, stop=lambda: next(steps) == stop_at)
    if state.state == "failed":
        raise SystemExit(state.message)
    return run


def _digest(run: Run) -> str:
    saved = checkpoint.load(run.path)
    assert saved is not None
    return saved.digest


CHECKS = {
    "resume": resume,
    "strict": strict,
    "waits": waits,
    "moved": moved,
    "times": times,
    "nccl": nccl,
    "parts": parts,
}

if __name__ == "__main__":
    main()
