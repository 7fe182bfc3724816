"""Start the processes of `pytest -n` as forks of a process that has collected the tests.

Each worker would collect the same tests; forking reduces its CPU time from 12 s to 4 s and shares the memory of
imported modules. Run as a script, this module is the parent of the forks; it ends with the process that controls the
suite.
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
LATER = (  # imported later by tests: 1.5 s of CPU time per process
    "torch.distributed.tensor",
    "torch._dynamo",
    "torch._decomp.decompositions_for_jvp",
    "matplotlib.backends.backend_pdf",
)


class Fork(gateway_base.Popen2IO):
    """Connection of execnet to a forked worker. The worker is not our child, so its pidfd is kept for signals."""

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
        """Wait until the worker has ended."""
        select.select([self.process], [], [])

    def kill(self) -> None:
        """Send SIGKILL to the worker."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.process, signal.SIGKILL)


def fork_them(config: pytest.Config) -> None:
    """Replace the workers of xdist by forks of one process, which ends with this one.

    Processes that tests start are forks of another one (tests/warm.py), which loads during the collection.
    """
    os.environ[warm.SUITE] = str(os.getpid())
    threading.Thread(target=warm.use, daemon=True).start()
    Fork.collected, its = socket.socketpair()
    with its:
        script = [sys.executable, "-m", "tests.workers", *config.args]
        subprocess.Popen(script, cwd=config.rootpath, stdin=its, stdout=subprocess.DEVNULL)
    gateway_io.Popen2IOMaster = Fork  # type: ignore


def main() -> None:
    """Collect the tests, then fork once per request; execnet controls each fork."""
    pytest.main(["--collect-only", "-pno:xdist", "-pno:cacheprovider", *sys.argv[1:]])
    for name in LATER:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a thread was started during collection; forks do not have it"
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
    os._exit(0)  # skip the teardown of imported modules, which takes 0.5 s
