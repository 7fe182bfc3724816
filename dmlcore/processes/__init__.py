"""Data-parallel training of one run by several processes, on one machine or several."""

from dmlcore.processes.batch_norm import synchronise
from dmlcore.processes.group import (
    ProcessError,
    Share,
    alone,
    average,
    broadcast,
    broadcast_tensors,
    gather,
    join,
    leave,
    local_rank,
    local_size,
    on_first,
    rank,
    share,
    shares_work,
    size,
)

__all__ = [
    "ProcessError",
    "Share",
    "alone",
    "average",
    "broadcast",
    "broadcast_tensors",
    "gather",
    "join",
    "leave",
    "local_rank",
    "local_size",
    "on_first",
    "rank",
    "share",
    "shares_work",
    "size",
    "synchronise",
]
