"""Processes begin as forks of one that has torch loaded and has trained once: three seconds of processor less for each.

`begin` stands for `dmlcore.storage.task.spawn_detached`, `run` for `subprocess.run` of Python: for tests of what comes
of a process. How one really begins is tested in tests/jobs/test_launch.py, tests/cli/test_main.py and tests/browser.
Run as a script, this is the process that is forked, one for all of the suite; it ends with the last who uses it.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from dmlcore.storage.home import HOME

SUITE = "DML_TESTS_WARM"  # the environment variable that names the run of the suite
DIGITS = 12
CARD = Path("/dev/nvidiactl")
LATER = (  # what commands, the end of a run, and runs of images and bags import when they come to it: a second in each
    "dmlcore.cli.main",
    "dmlcore.experiments.recovery",
    "dmlcore.inspection.neighbours",
    "dmlcore.geometry.hulls",
)
FOR = {"project": "openTSNE"}  # what an order with this word imports: once for all that follow, as it takes 0.7 seconds


class Begun:
    """A process that was begun, with what its users ask of a `subprocess.Popen`; one that was killed ends with -9."""

    def __init__(self, connection: socket.socket, arguments: Sequence[str]) -> None:
        self.connection, self.args, self.returncode = connection, arguments, None
        self.pid = self._told()

    def _told(self) -> int:
        """The next number that it tells: its own, then its status."""
        return int(self.connection.recv(DIGITS, socket.MSG_WAITALL) or -signal.SIGKILL)

    def poll(self) -> int | None:
        """Its exit status; None while it works."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended."""
        if self.returncode is None:
            if not select.select([self.connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired([*self.args], timeout or 0)
            self.returncode = self._told()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def _address() -> str:
    """Of one run of the suite in one tree: that of a mutant has other code."""
    return f"\0dml-{os.environ[SUITE]}-{hashlib.sha256(str(HOME).encode()).hexdigest()[:16]}"


def _connection() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_address())
    return connection


@cache
def use() -> socket.socket:
    """What keeps the forked process there while this one needs it; the first who does starts it."""
    os.environ.setdefault(SUITE, os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid())))
    deadline = time.monotonic() + 300
    process = None
    while True:
        try:
            return _connection()
        except ConnectionRefusedError:
            if process is None or process.poll():
                process = subprocess.Popen([sys.executable, "-m", "tests.warm"], cwd=HOME, start_new_session=True)
            assert time.monotonic() < deadline
            time.sleep(0.05)


def _ordered(
    arguments: Sequence[str], files: Mapping[int, int], cwd: Path, environment: Mapping[str, str] | None = None
) -> Begun | subprocess.Popen[bytes]:
    """files: which of our descriptors it has as which of its own."""
    if CARD.exists():  # a fork of what has trained on a GPU cannot use it
        pipes = dict(zip(("stdin", "stdout", "stderr"), (files[i] for i in range(3)), strict=True))
        others = [descriptor for descriptor in files if descriptor > 2]
        command = [sys.executable, *arguments]
        return subprocess.Popen(
            command, **pipes, pass_fds=others, cwd=cwd, env=environment or os.environ, start_new_session=True
        )
    use()
    connection = _connection()
    order = json.dumps(
        {
            "arguments": [*arguments],
            "files": [*files],
            "cwd": str(cwd),
            "environment": {**(environment or os.environ), SUITE: os.environ[SUITE]},
        }
    ).encode()
    socket.send_fds(connection, [len(order).to_bytes(8, "big")], [*files.values()])
    connection.sendall(order)
    return Begun(connection, arguments)


def begin(arguments: Sequence[str], log: Path | None = None) -> Begun:
    """Start Python with these arguments, -m MODULE or -c CODE first, in a session of its own."""
    with open(os.devnull) as nothing, open(log or os.devnull, "ab") as output:
        return _ordered(arguments, {0: nothing.fileno(), 1: output.fileno(), 2: output.fileno()}, HOME)


def popen(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    stdout: IO[Any] | None = None,
    stderr: IO[Any] | None = None,
    **_: Any,
) -> Begun:
    """Start a command that begins with Python; its output is ours, unless it says where."""
    with open(os.devnull) as nothing:
        own = {0: nothing.fileno(), 1: stdout.fileno() if stdout else 1, 2: stderr.fileno() if stderr else 2}
        return _ordered(command[1:], own | {fd: fd for fd in pass_fds}, HOME, env)


def begin_between(arguments: Sequence[str], reads: int, writes: int) -> Begun:
    """Start Python that reads from one descriptor and writes to another, which are its alone from then on."""
    begun = _ordered(arguments, {0: reads, 1: writes, 2: 2}, HOME)
    for descriptor in (reads, writes):
        os.close(descriptor)
    return begun


def as_subprocess() -> SimpleNamespace:
    """The module `subprocess`, for one that starts Python by it."""
    return SimpleNamespace(**vars(subprocess) | {"Popen": popen})


def run(*arguments: str, cwd: Path = HOME, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """What Python says and returns with these arguments."""
    with open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        status = _ordered(arguments, {0: nothing.fileno(), 1: out.fileno(), 2: err.fileno()}, cwd).wait(timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read(), err.read())


def starters() -> list[Any]:
    """The modules that begin a task by `spawn_detached`."""
    from dmlcore.jobs import launch
    from dmlcore.monitoring.estimate import speed
    from dmlcore.storage import task

    return [launch, speed, task]


def _follow(order: dict[str, Any], files: Sequence[int]) -> int:
    """What a new process would do; its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    tempfile.tempdir = None
    for descriptor, target in zip(files, order["files"], strict=True):
        os.dup2(descriptor, target)
    kind, program, *rest = order["arguments"]
    sys.argv = [program if kind == "-m" else kind, *rest]
    try:
        if kind == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _load() -> None:
    """Train once, since torch and scikit-learn import much of themselves at first use: 2.5 of 3 seconds."""
    import torch

    from dmlcore.spec import RunSpec
    from dmlcore.storage.runs import RunStore
    from dmlcore.training import loop

    torch.set_num_threads(1)  # a forked child cannot use the threads of its parent
    with tempfile.TemporaryDirectory() as folder:
        trained = RunStore(folder).create(RunSpec().with_overrides(["schedule.steps=1"]))
        with trained.lock():
            loop.train(trained)
    # A training run starts a second sooner without what torch.compile needs, and a third of one without SymPy.
    assert not {"torch._dynamo", "torch._inductor", "sympy"} & {*sys.modules}, "a plain training imported a compiler"
    for name in LATER:
        import_module(name)
    gc.collect()
    gc.freeze()  # forks look for garbage among what they make, not in what they share: a tenth of a second each time
    for module in starters():  # what a fork begins is a fork, too
        module.spawn_detached = begin


def main() -> None:
    """Load, then follow the orders of whoever connects; a connection without one is somebody who is there."""
    with socket.socket(socket.AF_UNIX) as listener, contextlib.suppress(OSError):  # another one was first
        listener.bind(_address())
        listener.listen(64)
        _load()
        _serve(listener)


def _import_ray(environment: Mapping[str, str]) -> None:
    """Once, for all workers of Ray: it takes a second, and reads on which addresses to listen as it is imported."""
    if "ray" not in sys.modules:
        os.environ.update({name: value for name, value in environment.items() if name.startswith("RAY_")})
        os.environ["RAY_RAYLET_PID"] = str(os.getpid())  # whose end is theirs, read as Ray is imported
        import_module("ray._private.workers.default_worker")


def _serve(listener: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    users: list[socket.socket] = []
    while ready := select.select([listener, *users], [], [], None if users else 30)[0]:
        for one in ready:
            if one is listener:
                users.append(listener.accept()[0])
                continue
            length, files, _, _ = socket.recv_fds(one, 8, 8)
            users.remove(one)
            if length:
                order = json.loads(one.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL))
                if order["arguments"][1].startswith("ray."):
                    _import_ray(order["environment"])
                for word in FOR.keys() & order["arguments"]:
                    import_module(FOR[word])
                gc.freeze()
                if not os.fork():
                    for other in (listener, *users):
                        other.close()
                    one = socket.socket(fileno=fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 500))  # out of the way
                    one.sendall(f"{os.getpid():{DIGITS}}".encode())
                    status = _follow(order, files)
                    sys.stdout.flush()
                    sys.stderr.flush()
                    with contextlib.suppress(OSError):  # whoever began it is gone
                        one.sendall(f"{status:{DIGITS}}".encode())
                    os._exit(status)
                for descriptor in files:
                    os.close(descriptor)
            one.close()


if __name__ == "__main__":
    main()
    os._exit(0)  # what was imported is not taken apart
