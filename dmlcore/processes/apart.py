"""The processes of a run on several machines, which a cluster has started: they meet at an address of the first one.

It listens at that address alone, and what the processes send each other leaves by the interface that has theirs.
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

ARRIVAL = timedelta(minutes=10)  # until all are there, once the first one is: each imports torch
CONNECT = timedelta(seconds=10)
LOOK = 0.2  # seconds between two looks for the address
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
_ASK_ADDRESS = 0x8915  # SIOCGIFADDR of Linux


@contextmanager
def placed(rank: int, count: int, local_rank: int, local_size: int) -> Iterator[None]:
    """Let the environment say what torchrun would: which process of the run this is, and which on this machine."""
    numbers = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": local_size}
    before = {key: os.environ.get(key) for key in (*numbers, *INTERFACES)}
    os.environ.update({key: str(value) for key, value in numbers.items()})
    try:
        yield
    finally:  # the process may do other work afterwards
        for key, value in before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value


def lead(address: str, tell: Callable[[int], object]) -> None:
    """Listen at an address of this machine, tell the others at which port, and go on when all have come.

    Raises ProcessError where they do not come.
    """
    listener = socket.create_server((address, 0))
    port = listener.getsockname()[1]
    store = TCPStore(address, port, None, True, ARRIVAL, wait_for_workers=False, master_listen_fd=listener.detach())
    tell(port)
    _leave_by(address)
    with _arriving():
        store.wait([f"here-{rank}" for rank in range(1, int(os.environ["WORLD_SIZE"]))])
        group.join(store)


def follow(ask: Callable[[], tuple[str, int] | None]) -> None:
    """Come to the address and port that the first process tells; raises ProcessError where there is none.

    Asked again until somebody answers there: a job that begins anew finds what the one before has told.
    """
    until = time.monotonic() + ARRIVAL.total_seconds()
    while time.monotonic() < until:
        with suppress(OSError, dist.DistError):
            if where := ask():
                with socket.create_connection(where, CONNECT.total_seconds()) as reached:
                    own = reached.getsockname()[0]
                store = TCPStore(*where, None, False, ARRIVAL, wait_for_workers=False)
                break
        time.sleep(LOOK)
    else:
        raise ProcessError("the first process tells no address, or does not answer there")
    _leave_by(own)
    with _arriving():
        store.set(f"here-{group.rank()}", "")
        group.join(store)


@contextmanager
def _arriving() -> Iterator[None]:
    try:
        yield
    except dist.DistError as error:
        raise ProcessError("the processes of the run did not all come together") from error


def _leave_by(address: str) -> None:
    """Have gloo and NCCL take the interface with this address, unless the environment of this machine names one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # one without an address
                answer = fcntl.ioctl(any_socket, _ASK_ADDRESS, struct.pack("256s", name.encode()))
                if socket.inet_ntoa(answer[20:24]) == address:
                    for key in INTERFACES:
                        os.environ.setdefault(key, name)
