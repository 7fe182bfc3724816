"""Checklist for the first minutes on a GPU: runs checks and benchmarks, most important first, and saves each result.

    python -m benchmarks.gpu_checklist --to gpu-numbers [--minutes 45] [--only 2,6] [--small]

Correctness checks run in parallel; timings follow one by one. After each item the script writes FOLDER/NN-name.txt (the
full output of the item) and FOLDER/summary.md, so that results are kept if the time runs out. If an item fails, this is
recorded and the next item starts. --small tests the commands on a machine without a GPU, in sizes suitable for a CPU;
its times are not meaningful.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import command_line

PYTHON = sys.executable
TINY = ["--device", "cpu", "--image-size", "32", "--blocks", "2", "--block", "2"]
LITTLE = ["model.name=conv4_32", "batch.classes=2", "batch.samples=2"]


@dataclass(frozen=True)
class Item:
    """Item of the checklist.

    Attributes:
        name: Short name, used in file names.
        question: Question that the item answers.
        command: Command to run.
        minutes: Time limit in minutes.
        environment: Additional environment variables.
        alone: True if nothing else may run at the same time, because the item is timed.
    """

    name: str
    question: str
    command: list[str]
    minutes: float = 4.0
    environment: dict[str, str] = field(default_factory=dict)
    alone: bool = True


def items(small: bool) -> list[Item]:
    """Return the items of the checklist, most important first; if `small`, with sizes suitable for a CPU."""

    def gpu(*overrides: str, blocks: int = 4, options: tuple[str, ...] = ()) -> list[str]:
        sizes = [*TINY, *options, *LITTLE] if small else ["--blocks", str(blocks), *options]
        return [PYTHON, "-m", "benchmarks.gpu", *sizes, *overrides]

    def check(name: str) -> list[str]:
        return [PYTHON, "-m", "benchmarks.gpu_checks", name, *(["--small"] if small else [])]

    def tests(*names: str) -> list[str]:
        return [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", *names]

    real = {} if small else {"DML_DEVICE_TESTS": "real"}
    long_test = "::test_row_1_kill_9_changes_nothing_at_full_strength"
    return [
        Item("machine", "Which GPU and software is this?", [PYTHON, "-c", MACHINE], 1, alone=False),
        Item(
            "devices",
            "Do catalogue, runs and search agree with the CPU, and the simulated rules with CUDA?",
            tests("tests/devices"),
            6,
            real,
            alone=False,
        ),
        Item(
            "faults",
            "Does a killed and resumed run end like an undisturbed one?",
            tests("tests/faults/test_training_faults.py" + long_test),
            5,
            alone=False,
        ),
        Item("resume", "Are two runs and a resumed run equal byte for byte?", check("resume"), 5, alone=False),
        Item("strict", "Which operations have no deterministic kernel?", check("strict"), 2, alone=False),
        Item("moved", "Do runs started on the CPU continue here?", check("moved"), 2, alone=False),
        Item(
            "together",
            "Do the gradients of two and of four processes equal those of one?",
            [PYTHON, "-m", "benchmarks.ddp", "--few", *([] if small else ["--cuda"])],
            5,
            alone=False,
        ),
        Item("nccl", "Does communication between processes work with NCCL?", check("nccl"), 2, alone=False),
        Item("step", "How close is a step to the bare step (ResNet-50, 227 px, bfloat16)?", gpu(blocks=6), 4),
        Item("parts", "How long do the parts of a step take?", check("parts"), 3),
        Item("waits", "Which lines make the host wait in a step?", check("waits"), 3),
        Item("times", "How long do checkpoint, embedding and exact search take?", check("times"), 5),
        Item("gsp", "How much do the prototypes of GSP cost?", gpu("batch.classes=32", "pooling.name=gsp"), 3),
        Item(
            "gsp-float32",
            "How much do they cost in float32?",
            gpu("batch.classes=32", "pooling.name=gsp", "compute.precision=float32"),
            3,
        ),
        Item("sgd", "Does SGD train beyond its warm-up?", gpu("optimiser.name=sgd", "schedule.warm_up=10"), 3),
        Item("free", "How much does deterministic arithmetic cost the bare step?", gpu(options=("--free",)), 3),
        Item(
            "input",
            "Does the input pipeline keep up?",
            [
                PYTHON,
                "-m",
                "benchmarks.input",
                *(["--images", "60", "--seconds", "0.2"] if small else ["--threads", "8"]),
            ],
            3,
        ),
        Item("compile", "How much faster is a compiled step?", gpu("compute.compile=true"), 4),
    ]


MACHINE = """
import os, subprocess, torch, faiss, dmlcore
print("torch", torch.__version__, "CUDA", torch.version.cuda, "faiss", faiss.__version__, "cores", os.cpu_count())
print(torch.cuda.get_device_name() if torch.cuda.is_available() else "this machine has no usable CUDA device")
subprocess.run("nvidia-smi || true", shell=True)
"""


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--minutes", type=float, default=45.0)
    parser.add_argument("--only", default="", help="numbers of the items to run, for example 2,6")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    chosen = {int(number) for number in arguments.only.split(",") if number}
    until = time.monotonic() + 60 * arguments.minutes
    rows: dict[int, str] = {}

    def answer(number: int, item: Item) -> None:
        left = until - time.monotonic()
        verdict, seconds, printed = run(item, min(left, 60 * item.minutes)) if left > 10 else ("no time left", 0.0, "")
        (arguments.to / f"{number:02}-{item.name}.txt").write_text(printed)
        last = next((line for line in reversed(printed.splitlines()) if line.strip()), "")
        rows[number] = (
            f"| {number} | {item.question} | {verdict} | {seconds:.0f} | {last.strip()[:160].replace('|', '/')} |"
        )
        head = "| | question | verdict | s | last line |\n|--:|---|---|--:|---|\n"
        lines = "".join(rows[at] + "\n" for at in sorted(rows))
        (arguments.to / "summary.md").write_text(head + lines)
        print(rows[number], flush=True)

    numbered = [(i, item) for i, item in enumerate(items(arguments.small), 1) if not chosen or i in chosen]
    parallel = [(i, item) for i, item in numbered if not item.alone]
    with ThreadPoolExecutor(1 if arguments.small else max(1, len(parallel))) as pool:
        list(pool.map(lambda each: answer(*each), parallel))
    for number, item in numbered:
        if item.alone:
            answer(number, item)


def run(item: Item, seconds: float) -> tuple[str, float, str]:
    """Run an item with a time limit in seconds; return its verdict, the seconds taken and its complete output."""
    began = time.monotonic()
    process = subprocess.Popen(
        item.command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | item.environment,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
        verdict = "done" if process.returncode == 0 else f"FAILED ({process.returncode})"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        printed, _ = process.communicate()
        verdict = "timed out"
    return verdict, time.monotonic() - began, f"$ {' '.join(item.command)}\n{printed}"


if __name__ == "__main__":
    main()
