"""Tasks begin as forks of a process that has torch loaded: two seconds of processor less for each.

`begin` stands for `dmlcore.storage.task.detached` in tests of what pages show of a task (tests/pages/conftest.py).
How a task really begins is tested in tests/jobs, tests/faults and tests/browser. Run as a script, this is that process:
for each line of standard input, an order as JSON, it says the number of the child that follows it.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dmlcore.storage.home import HOME


@cache
def _parent() -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(HOME), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, __file__], env=environment, stdin=pipe, stdout=pipe, text=True)
    atexit.register(process.communicate)
    return process


def begin(arguments: Sequence[str], log: Path | None = None) -> int:
    """Start Python with these arguments, -m MODULE first, in a session of its own; its process id."""
    parent = _parent()
    assert parent.stdin
    assert parent.stdout
    order = {"arguments": [*arguments], "environment": dict(os.environ), "log": str(log or os.devnull)}
    parent.stdin.write(json.dumps(order) + "\n")
    parent.stdin.flush()
    return int(parent.stdout.readline())


def _follow(order: dict[str, Any]) -> int:
    """What a new process would do; its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(HOME)
    os.environ.clear()
    os.environ.update(order["environment"])
    output = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for descriptor, target in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
        os.dup2(descriptor, target)
    dash, module, *rest = order["arguments"]
    assert dash == "-m"
    sys.argv = [module, *rest]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    """Load, then follow the orders."""
    import torch

    import dmlcore.cli.main
    import dmlcore.inspection.maps.maps
    import dmlcore.training.loop  # noqa: F401

    torch.set_num_threads(1)  # a forked child cannot use the threads of its parent
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    for line in sys.stdin:
        if pid := os.fork():
            print(pid, flush=True)
            continue
        status = _follow(json.loads(line))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
