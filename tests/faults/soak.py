"""Soak test of several hours: user sessions and training runs, while servers and training runs are killed at random.

`dml serve` restarts its server when it dies. Training runs are started alternately on a Ray cluster of two nodes and on
the local machine; without Ray, all are local. In the first half of the test, about once a minute a server process is
killed, and a cluster node is killed and replaced; several times a minute a training run or its supervisor is killed and
resumed by `dml recover`. In the second half the server is not killed, so that its memory and open file descriptors can
be tracked. Then every run is compared byte for byte with an undisturbed run of the same spec, and the store is searched
for leftovers. Exits with 1 if anything was lost.

`python -m tests.faults.soak` takes two hours; --minutes 10 gives a quick result.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import command_line, is_answered, machine, memory, report, verdict
from benchmarks.sessions import PAGES, Visitor
from dmlcore.experiments import recovery
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec
from dmlcore.storage import locks
from dmlcore.storage.runs import Run, RunStore
from tests.browser.harness import ROOT, free_port
from tests.faults.crash import remains, until
from tests.faults.test_training_faults import outcome
from tests.jobs.backends import cluster as clusters

SEEDS = 4  # number of different training specs; each is trained as often as time allows
SPEC = RunSpec(device="cpu").with_overrides(
    ["data.name=digits", "schedule.steps=800", "schedule.validate_every=250", "schedule.checkpoint_every=50"]
)
TRAINING_LIVES, SERVER_LIVES = (4.0, 20.0), (30.0, 120.0)  # minimum and maximum seconds between two kills
SETTLES = 60.0  # seconds after the start of a server that are excluded from the memory drift
MOST_DRIFT = 20.0  # goal: maximum memory drift in MiB per 1,000 reruns


@dataclass
class Soak:
    """State of the test so far, shared by its threads."""

    store: RunStore
    port: int
    serving: int  # process of `dml serve`
    times: list[float] = field(default_factory=list)  # milliseconds of reruns
    lost: int = 0  # number of sessions that lost their connection
    # (reruns so far, memory of the server in MiB) in the second half
    samples: list[tuple[int, float]] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=lambda: {"server": 0, "training": 0, "node": 0})
    over: threading.Event = field(default_factory=threading.Event)
    # set while the simulated users must not send requests
    quiet: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Address of the app."""
        return f"http://127.0.0.1:{self.port}"

    def server(self) -> int:
        """Return the id of the current server process; 0 if there is none."""
        children = Path(f"/proc/{self.serving}/task/{self.serving}/children").read_text().split()
        return int(children[0]) if children else 0

    def ready(self) -> bool:
        """Return True if the server is ready for user sessions."""
        return is_answered(f"{self.url}/api/ready")


async def visit(soak: Soak, sessions: int) -> None:
    """Keep `sessions` user sessions open until the test ends.

    Each opens one page after another, one second apart, and reconnects when its connection is lost.
    """

    async def one(number: int) -> None:
        page = number
        visitor = None
        while not soak.over.is_set():
            if soak.quiet.is_set():
                if visitor:
                    await visitor.page.close()
                visitor = None
                await asyncio.sleep(0.5)
                continue
            try:
                if visitor is None:
                    visitor = Visitor(soak.url)
                    await asyncio.wait_for(visitor.connect(), 120)
                soak.times.append(1000 * await asyncio.wait_for(visitor.rerun(PAGES[page % len(PAGES)]), 120))
                page += 1
                await asyncio.sleep(1)
            except Exception:  # a killed server can cause any error on a socket
                soak.lost += visitor is not None and hasattr(visitor, "page")
                visitor = None
                await asyncio.sleep(1)

    await asyncio.gather(*(one(number) for number in range(sessions)))


def train(soak: Soak, count: int, choose: random.Random, cluster: Any) -> None:
    """Keep `count` training runs active and kill a random one every few seconds.

    Runs are started alternately on this machine and on the cluster; without a cluster, all are local.
    """
    started = 0
    due = time.monotonic() + choose.uniform(*TRAINING_LIVES)
    while not soak.over.is_set():
        recovery.recover(soak.store, report=lambda _: None)
        while len(launch.active(soak.store)) < count:
            backend = f"ray:{cluster.address}" if cluster and started % 2 else ""
            launch.launch(SPEC.with_overrides([f"seed={started // 2 % SEEDS}"]), soak.store, backend=backend)
            started += 1
        if time.monotonic() > due:
            running_runs = [run for run in launch.active(soak.store) if run.status() == "running" and run.state().step]
            if running_runs and (process := locks.holder(choose.choice(running_runs).path / "lock")):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                    soak.kills["training"] += 1
            due = time.monotonic() + choose.uniform(*TRAINING_LIVES)
        time.sleep(1)


def watch(soak: Soak, seconds: float, choose: random.Random | None, cluster: Any) -> None:
    """Kill the server and a cluster node at random intervals; if `choose` is None, only record the server's memory."""
    end, begin = time.monotonic() + seconds, time.monotonic()
    due, node_due = (begin + choose.uniform(*SERVER_LIVES) / 2 if choose else end + 1 for _ in range(2))
    while (now := time.monotonic()) < end:
        if choose and now > due:
            if process := soak.server():
                os.kill(process, signal.SIGKILL)
                soak.kills["server"] += 1
            due = now + choose.uniform(*SERVER_LIVES)
        if cluster and choose and now > node_due:
            cluster.remove_node(cluster.worker, allow_graceful=False)
            cluster.join()  # must run in this thread, because Ray sets a signal handler
            soak.kills["node"] += 1
            node_due = now + choose.uniform(*SERVER_LIVES)
        if not choose and now - begin > min(SETTLES, seconds / 4):
            soak.samples.append((len(soak.times), memory(pid=soak.server()) / 2**20))
        time.sleep(1)


def descriptors(soak: Soak) -> int:
    """Return the number of open file descriptors of the server without user sessions: the minimum over ten seconds."""
    soak.quiet.set()
    least = 10**9
    for _ in range(20):
        time.sleep(0.5)
        least = min(least, len(os.listdir(f"/proc/{soak.server()}/fd")))
    soak.quiet.clear()
    return least


@contextlib.contextmanager
def running(soak: Soak, sessions: int, trainings: int, seed: int, cluster: Any) -> Iterator[None]:
    """Run user sessions and training runs, in one thread each; stop both when the context exits."""
    threads = [
        threading.Thread(target=lambda: asyncio.run(visit(soak, sessions))),
        threading.Thread(target=train, args=(soak, trainings, random.Random(seed), cluster)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        soak.over.set()
        for thread in threads:
            thread.join()


def undisturbed(root: Path) -> dict[int, dict[str, str]]:
    """Train one undisturbed run for each of SEEDS seeds; return the digests of its results by seed."""
    store = RunStore(root)
    runs = {seed: launch.launch(SPEC.with_overrides([f"seed={seed}"]), store) for seed in range(SEEDS)}
    until(lambda: all(store.open(name).status() == "done" for name in runs.values()), 3600)
    return {seed: outcome(store.open(name)) for seed, name in runs.items()}


def ended(store: RunStore) -> list[Run]:
    """Resume killed runs until all runs in the store have ended; return the runs."""

    def done() -> bool:
        recovery.recover(store, report=lambda _: None)
        return all(run.status() not in ("queued", "running", "lost") for run in store.list())

    until(done, 3600)
    return list(store.list())


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--trainings", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ |= {"DML_CPU_RUNS": str(arguments.trainings), "OMP_NUM_THREADS": "1"}
    print(machine("streamlit", "torch"), flush=True)
    half = arguments.minutes * 30
    nodes = clusters.two_nodes() if find_spec("ray") else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder, nodes as cluster:
        store, port = RunStore(Path(folder) / "runs"), free_port()
        store.root.mkdir()
        command = [sys.executable, "-m", "dmlcore", "serve", "--port", str(port), "--runs", str(store.root)]
        with open(Path(folder) / "log", "wb") as log:
            serving = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        soak = Soak(store, port, serving.pid)
        try:
            until(soak.ready)
            choose = random.Random(arguments.seed)
            with running(soak, arguments.sessions, arguments.trainings, arguments.seed, cluster):
                watch(soak, half, choose, cluster)
                until(soak.ready)
                before = descriptors(soak)
                watch(soak, half, None, cluster)
                after = descriptors(soak)
        finally:
            serving.terminate()
            serving.wait(60)
        runs = ended(store)
        expected = undisturbed(Path(folder) / "undisturbed")
        wrong = [run.id for run in runs if run.status() != "done" or outcome(run) != expected[run.spec.seed]]
        away, left = sum(bool(run.state().backend) for run in runs), remains(store)
    reruns, held = (np.array(column, float) for column in zip(*soak.samples, strict=True))
    drift = 1000 * np.polyfit(reruns, held, 1)[0]
    report(f"{arguments.sessions} sessions, reruns", soak.times, f"{soak.lost} connections cut and restored")
    print("killed: " + ", ".join(f"{what} {count} times" for what, count in soak.kills.items()))
    same = f"{len(runs) - len(wrong)} equal undisturbed runs byte for byte"
    print(f"{len(runs)} runs, {away} of them on the cluster; {same}; left over: {len(left)}")
    print(f"descriptors of the server without visitors {before} -> {after}")
    goal = f"{verdict(drift <= MOST_DRIFT)} (goal {MOST_DRIFT:.0f})"
    slope = f"{drift:+.1f} MiB per 1,000 reruns of {np.ptp(reruns):.0f}"
    print(f"memory {held[0]:.0f} -> {held[-1]:.0f} MiB, {slope}: {goal}")
    for name in (*wrong, *left):
        print(f"LOST: {name}")
    sys.exit(bool(wrong or left))


if __name__ == "__main__":
    main()
