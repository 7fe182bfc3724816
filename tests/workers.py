"""The processes of `pytest -n` begin as forks of one that has collected the tests, as each would collect the same.

Twelve seconds of processor become four for each, and what is imported is in memory once. Run as a script, this is the
process that is forked; it ends with the one that leads the suite.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest
from execnet import gateway_base, gateway_io

from tests import warm

DIGITS = 12
LATER = (  # what tests of each process import when they come to it: a second and a half of processor
    "torch.distributed.tensor",
    "torch._dynamo",
    "torch._decomp.decompositions_for_jvp",
    "matplotlib.backends.backend_pdf",
)


class Fork(gateway_base.Popen2IO):
    """What execnet speaks to a worker through; its process is none of ours, so we hold a descriptor of it."""

    collected: socket.socket

    def __init__(self, args: object, execmodel: Any) -> None:
        its_input, to_it = os.pipe()
        from_it, its_output = os.pipe()
        socket.send_fds(self.collected, [b"."], [its_input, its_output])
        os.close(its_input)
        os.close(its_output)
        self.process = os.pidfd_open(int(self.collected.recv(DIGITS, socket.MSG_WAITALL)))
        super().__init__(os.fdopen(to_it, "wb"), os.fdopen(from_it, "rb"), execmodel=execmodel)

    def wait(self) -> None:
        """Until it has ended."""
        select.select([self.process], [], [])

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.process, signal.SIGKILL)


def fork_them(config: pytest.Config) -> None:
    """From here on workers are forks of one process, which ends with this one.

    What tests start is forked of another one (tests/warm.py), which loads while that one collects.
    """
    os.environ[warm.SUITE] = str(os.getpid())
    threading.Thread(target=warm.use, daemon=True).start()
    Fork.collected, its = socket.socketpair()
    with its:
        script = [sys.executable, "-m", "tests.workers", *config.args]
        subprocess.Popen(script, cwd=config.rootpath, stdin=its, stdout=subprocess.DEVNULL)
    gateway_io.Popen2IOMaster = Fork  # type: ignore


def main() -> None:
    """Collect, then fork for whoever asks; each is told what to do by execnet."""
    pytest.main(["--collect-only", "-pno:xdist", "-pno:cacheprovider", *sys.argv[1:]])
    for name in LATER:
        importlib.import_module(name)
    assert threading.active_count() == 1, "collecting has begun a thread, and a fork has none of it"
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    with socket.socket(fileno=os.dup(0)) as orders:
        while files := socket.recv_fds(orders, 1, 2)[1]:
            if not (process := os.fork()):
                break
            orders.sendall(f"{process:{DIGITS}}".encode())
            for file in files:
                os.close(file)
        else:
            return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    sys.argv = ["-c"]
    exec(gateway_io.popen_bootstrapline, {"__name__": "__main__"})


if __name__ == "__main__":
    main()
    atexit._run_exitfuncs()
    os._exit(0)  # what was imported is not taken apart: half a second
