"""Several processes that train one run together, on one machine or on several."""

from dmlcore.processes.batch_norm import synchronise
from dmlcore.processes.group import (
    ProcessError,
    Share,
    alone,
    average,
    broadcast,
    copy_first,
    first,
    gather,
    join,
    leave,
    local_rank,
    local_size,
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
    "copy_first",
    "first",
    "gather",
    "join",
    "leave",
    "local_rank",
    "local_size",
    "rank",
    "share",
    "shares_work",
    "size",
    "synchronise",
]
