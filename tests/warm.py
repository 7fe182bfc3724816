"""Start processes as forks of a process that has imported torch and trained once, which saves 3 s of CPU time each.

`begin` replaces `dmlcore.storage.task.spawn_detached`, and `run` replaces `subprocess.run` for Python, in tests of the
results of a process. The real start is tested in tests/jobs/test_launch.py, tests/cli/test_main.py and tests/browser.
Run as a script, this module is the parent of the forks. The suite has one such process; it ends when its last user
disconnects.
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

SUITE = "DML_TESTS_WARM"  # environment variable that identifies the run of the suite
DIGITS = 12
CARD = Path("/dev/nvidiactl")
LATER = (  # imported later by commands, at the end of a run, and by runs on images and bags: one second per process
    "dmlcore.cli.main",
    "dmlcore.experiments.recovery",
    "dmlcore.inspection.neighbours",
    "dmlcore.geometry.hulls",
)
# imported before forking if a request has this argument: 0.7 s, needed once for all later forks
FOR = {"project": "openTSNE"}


class ForkedProcess:
    """Forked process with the interface of `subprocess.Popen` that tests use. The status of a killed process is -9."""

    def __init__(self, connection: socket.socket, arguments: Sequence[str]) -> None:
        self.connection, self.args, self.returncode = connection, arguments, None
        self.pid = self._told()

    def _told(self) -> int:
        """Receive the next number from the fork: first its pid, then its exit status."""
        return int(self.connection.recv(DIGITS, socket.MSG_WAITALL) or -signal.SIGKILL)

    def poll(self) -> int | None:
        """Return the exit status, or None while the process is running."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended and return its exit status."""
        if self.returncode is None:
            if not select.select([self.connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired([*self.args], timeout or 0)
            self.returncode = self._told()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _address() -> str:
    """Return the socket address for this run of the suite and this tree; a mutant has different code."""
    return f"\0dml-{os.environ[SUITE]}-{hashlib.sha256(str(HOME).encode()).hexdigest()[:16]}"


def _connection() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_address())
    return connection


@cache
def use() -> socket.socket:
    """Return a connection that keeps the parent of the forks alive; start the parent if it is not running."""
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


def _request_fork(
    arguments: Sequence[str], files: Mapping[int, int], cwd: Path, environment: Mapping[str, str] | None = None
) -> ForkedProcess | subprocess.Popen[bytes]:
    """Request a fork. `files` maps descriptors of the new process to descriptors of this one."""
    if CARD.exists():  # a fork of a process that has used CUDA cannot use the GPU
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
    return ForkedProcess(connection, arguments)


def begin(arguments: Sequence[str], log: Path | None = None) -> ForkedProcess:
    """Start Python in its own session. The arguments begin with -m MODULE or -c CODE."""
    with open(os.devnull) as nothing, open(log or os.devnull, "ab") as output:
        return _request_fork(arguments, {0: nothing.fileno(), 1: output.fileno(), 2: output.fileno()}, HOME)


def popen(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    stdout: IO[Any] | None = None,
    stderr: IO[Any] | None = None,
    **_: Any,
) -> ForkedProcess:
    """Start a command whose first word is Python. Its output goes to ours unless `stdout` or `stderr` is given."""
    with open(os.devnull) as nothing:
        own = {0: nothing.fileno(), 1: stdout.fileno() if stdout else 1, 2: stderr.fileno() if stderr else 2}
        return _request_fork(command[1:], own | {fd: fd for fd in pass_fds}, HOME, env)


def begin_between(arguments: Sequence[str], reads: int, writes: int) -> ForkedProcess:
    """Start Python with stdin `reads` and stdout `writes`, and close these descriptors in this process."""
    begun = _request_fork(arguments, {0: reads, 1: writes, 2: 2}, HOME)
    for descriptor in (reads, writes):
        os.close(descriptor)
    return begun


def as_subprocess() -> SimpleNamespace:
    """Return a copy of the module `subprocess` whose `Popen` forks."""
    return SimpleNamespace(**vars(subprocess) | {"Popen": popen})


def run(*arguments: str, cwd: Path = HOME, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and return its output and exit status."""
    with open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        status = _request_fork(arguments, {0: nothing.fileno(), 1: out.fileno(), 2: err.fileno()}, cwd).wait(timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read(), err.read())


def starters() -> list[Any]:
    """Return the modules that call `spawn_detached`."""
    from dmlcore.jobs import launch
    from dmlcore.storage import task

    return [launch, task]


def _follow(order: dict[str, Any], files: Sequence[int]) -> int:
    """Run the requested program in this fork and return its exit status."""
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
    """Train once, because torch and scikit-learn import most of their modules at first use (2.5 of 3 s)."""
    import torch

    from dmlcore.spec import RunSpec
    from dmlcore.storage.runs import RunStore
    from dmlcore.training import loop

    torch.set_num_threads(1)  # a forked child cannot use the threads of its parent
    with tempfile.TemporaryDirectory() as folder:
        trained = RunStore(folder).create(RunSpec().with_overrides(["schedule.steps=1"]))
        with trained.lock():
            loop.train(trained)
    # A training run starts 1 s sooner without the imports of torch.compile, and a third of a second without SymPy.
    assert not {"torch._dynamo", "torch._inductor", "sympy"} & {*sys.modules}, (
        "a plain training run imported a compiler"
    )
    for name in LATER:
        import_module(name)
    gc.collect()
    gc.freeze()  # exclude shared objects from garbage collection in the forks: 0.1 s per collection
    for module in starters():  # tasks started by a fork are forks, too
        module.spawn_detached = begin


def main() -> None:
    """Load, then serve requests. A connection without a request only keeps this process alive."""
    with socket.socket(socket.AF_UNIX) as listener, contextlib.suppress(OSError):  # another process was first
        listener.bind(_address())
        listener.listen(64)
        _load()
        _serve(listener)


def _import_ray(environment: Mapping[str, str]) -> None:
    """Import Ray once for all its workers: it takes 1 s, and Ray reads the listening addresses at import."""
    if "ray" not in sys.modules:
        os.environ.update({name: value for name, value in environment.items() if name.startswith("RAY_")})
        os.environ["RAY_RAYLET_PID"] = str(os.getpid())  # the parent process whose end Ray watches, read at import
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
                    # a number that no requested descriptor has
                    one = socket.socket(fileno=fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 500))
                    one.sendall(f"{os.getpid():{DIGITS}}".encode())
                    status = _follow(order, files)
                    sys.stdout.flush()
                    sys.stderr.flush()
                    with contextlib.suppress(OSError):  # the process that started the fork has ended
                        one.sendall(f"{status:{DIGITS}}".encode())
                    os._exit(status)
                for descriptor in files:
                    os.close(descriptor)
            one.close()


if __name__ == "__main__":
    main()
    os._exit(0)  # skip the teardown of imported modules
