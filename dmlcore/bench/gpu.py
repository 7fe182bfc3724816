"""`dml bench gpu`: measure a GPU part by part in at most eight minutes, as Markdown tables with ratios.

Each part is a module that runs in its own process with a time limit, so that a part that fails or does not end costs
only itself: `python -m dmlcore.bench.PART [--small]` runs it alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dmlcore.storage.home import HOME

PACKAGE = "dmlcore.bench"


@dataclass(frozen=True)
class Part:
    """Part of the benchmark.

    Attributes:
        name: Name on the command line, and of the module in `dmlcore.bench`.
        limit: Time limit in seconds.
        small: Arguments of the module with small sizes.
    """

    name: str
    limit: float
    small: tuple[str, ...] = ("--small",)


PARTS = (
    Part("losses", 140),
    # a C++ compiler takes minutes for the compiled network on a CPU
    Part("step", 125, ("--small", "--mode", "eager", "graphs")),
    Part("search", 25),
    Part("embedding", 25),
    Part("checks", 85),
    Part("maps", 80),
)


def main(arguments: Sequence[str]) -> int:
    """Run the chosen parts one after another; return the exit status: 0 if all ended without an error."""
    parser = argparse.ArgumentParser(prog="dml bench gpu", description=__doc__.partition("\n\n")[0])
    names = [part.name for part in PARTS]
    parser.add_argument("--only", action="append", choices=names, help="run only this part; repeatable")
    parser.add_argument("--minutes", type=float, default=8.0, help="time limit of all parts [default: 8]")
    parser.add_argument("--small", action="store_true", help="small sizes, for a machine without a GPU")
    chosen = parser.parse_args(arguments)
    if not torch.cuda.is_available() and not chosen.small:
        print("this machine has no usable CUDA device; --small tries all parts on the CPU", file=sys.stderr)
        return 1
    print(machine(), flush=True)
    until = time.monotonic() + 60 * chosen.minutes
    ended = {}
    for part in PARTS:
        if not chosen.only or part.name in chosen.only:
            print(f"\n## {part.name}", flush=True)
            began = time.monotonic()
            verdict = run(part, min(part.limit, until - began), small=chosen.small)
            ended[part.name] = verdict
            print(f"\n{part.name}: {verdict} after {time.monotonic() - began:.0f} s", flush=True)
    failed = [f"{name} {verdict}" for name, verdict in ended.items() if verdict != "done"]
    print(
        f"\n{len(ended) - len(failed)} of {len(ended)} parts done{': ' * bool(failed)}{', '.join(failed)}", flush=True
    )
    return int(bool(failed))


def machine() -> str:
    """Return one line with the device, the number of cores, the driver and the versions."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU, small sizes: times mean nothing"
    driver = ""
    if torch.cuda.is_available():
        query = ["nvidia-smi", "--query-gpu=driver_version,memory.total", "--format=csv,noheader"]
        driver = f", driver {subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()}"
    cores = len(os.sched_getaffinity(0))
    return f"{device}{driver}, {cores} cores, torch {torch.__version__}, Python {platform.python_version()}"


def run(part: Part, limit: float, *, small: bool) -> str:
    """Run a part in its own process for at most `limit` seconds; return "done", "FAILED" or "timed out"."""
    if limit < 5:
        return "not started, no time left"
    paths = [str(HOME), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    command = [sys.executable, "-u", "-m", f"{PACKAGE}.{part.name}", *(part.small if small else ())]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.STDOUT, process_group=0)
    try:
        return "done" if process.wait(limit) == 0 else f"FAILED (exit status {process.returncode})"
    except subprocess.TimeoutExpired:
        return f"stopped at its limit of {limit:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
