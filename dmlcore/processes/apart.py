"""Process group of a run with processes on several machines of a cluster.

Rank 0 listens at a single address, to which the other processes connect. Each process communicates only through the
network interface that this connection uses.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch.distributed as dist
from torch._C._distributed_c10d import TCPStore

from dmlcore.processes import group
from dmlcore.processes.group import ProcessError

# time limit for all processes to join, counted from the start of rank 0; includes the import of torch in each process
ARRIVAL = timedelta(minutes=10)
CONNECT = timedelta(seconds=10)
POLL_INTERVAL = 0.2  # seconds between two queries for the address of rank 0
_FAILURE = "failure"  # key of the message of a process that failed, in the store through which the processes meet
_stores: list[TCPStore] = []  # the store of the group that this process has joined last
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
_ASK_ADDRESS = 0x8915  # SIOCGIFADDR on Linux


@contextmanager
def set_rank(rank: int, count: int, local_rank: int, local_size: int) -> Iterator[None]:
    """Within this context, set RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE as torchrun does.

    On exit, the previous values are restored, also those of the variables in INTERFACES, which joining may set.
    """
    numbers = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": local_size}
    before = {key: os.environ.get(key) for key in (*numbers, *INTERFACES)}
    os.environ.update({key: str(value) for key, value in numbers.items()})
    try:
        yield
    finally:  # restore, because the process may execute other tasks afterwards
        for key, value in before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value


def lead(address: str, tell: Callable[[int], object]) -> None:
    """Join the group as rank 0: listen on an address of this machine and wait for the other processes.

    Args:
        address: IP address to listen on.
        tell: Function that publishes the port; called once with the port that the system has chosen.

    Raises:
        ProcessError: Not all processes joined within ARRIVAL.
    """
    listener = socket.create_server((address, 0))
    port = listener.getsockname()[1]
    store = TCPStore(address, port, None, True, ARRIVAL, wait_for_workers=False, master_listen_fd=listener.detach())
    _stores[:] = [store]
    tell(port)
    _leave_by(address)
    with _arriving():
        store.wait([f"here-{rank}" for rank in range(1, int(os.environ["WORLD_SIZE"]))])
        group.join(store)


def follow(ask: Callable[[], tuple[str, int] | None]) -> None:
    """Join the group as a rank other than 0.

    Args:
        ask: Function that returns the address and port published by rank 0, or None. It is called repeatedly until a
            server answers at that address, since a restarted job may first find the address of its previous attempt.

    Raises:
        ProcessError: No server answers within ARRIVAL.
    """
    until = time.monotonic() + ARRIVAL.total_seconds()
    while time.monotonic() < until:
        with suppress(OSError, dist.DistError):
            if where := ask():
                with socket.create_connection(where, CONNECT.total_seconds()) as reached:
                    own = reached.getsockname()[0]
                store = TCPStore(*where, None, False, ARRIVAL, wait_for_workers=False)
                break
        time.sleep(POLL_INTERVAL)
    else:
        raise ProcessError("the first process has not published its address, or does not respond there")
    _stores[:] = [store]
    _leave_by(own)
    with _arriving():
        store.set(f"here-{group.rank()}", "")
        group.join(store)


def report_failure(reason: str) -> None:
    """Tell rank 0 why this process fails; call this before leaving the group."""
    for store in _stores:
        store.set(_FAILURE, reason)


def failure() -> str:
    """Return, on rank 0, the message of another process that failed; "" if there is none."""
    return next((store.get(_FAILURE).decode() for store in _stores if store.check([_FAILURE])), "")


@contextmanager
def _arriving() -> Iterator[None]:
    try:
        yield
    except dist.DistError as error:
        raise ProcessError("not all processes of the run connected in time") from error


def _leave_by(address: str) -> None:
    """Make gloo and NCCL use the network interface with this IP address, unless the environment selects another one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # raised for an interface without an address
                answer = fcntl.ioctl(any_socket, _ASK_ADDRESS, struct.pack("256s", name.encode()))
                if socket.inet_ntoa(answer[20:24]) == address:
                    for key in INTERFACES:
                        os.environ.setdefault(key, name)
