"""What `matlab` starts: scipy reads .mat files here, each in a process of its own, as damaged ones crash it.

A line of its input is JSON: path, bytes of memory, seconds of a processor. A line of its output is a JSON object of all
variables, or the reason why there is none. It ends with its input, or when nothing is asked for a minute. No module of
ours is imported: it is started for the first file, and must be quick.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
from typing import Any

import numpy as np

IDLE = 60  # seconds
LONGEST = 2**28  # bytes of an answer
_PLAIN = {**dict.fromkeys("biuf", "numbers"), "U": "words"}  # kinds of numpy
DEEPEST = 2  # a cell or struct holds numbers and words; what they hold within one another is not followed


def main() -> None:
    """Answer line by line."""
    importlib.import_module("scipy.io")  # once, before all forks

    while True:
        signal.alarm(IDLE)
        line = sys.stdin.readline()
        signal.alarm(0)
        if not line:
            return
        print(answer(*json.loads(line)), flush=True)


def answer(path: str, memory: int, seconds: int) -> str:
    """What a process that is forked for this file says before it ends, or how it ended."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            limit(memory, seconds)
            with open(writing, "wb") as file:
                file.write(json.dumps(read(path)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        content = file.read(LONGEST)
    os.kill(child, signal.SIGKILL)  # one that says more than that would wait; one that has ended stays as it is
    _, status = os.waitpid(child, 0)
    if content and len(content) < LONGEST:
        return content.decode()
    ended = f"scipy ended by {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else "scipy gave up"
    return json.dumps({"error": "it holds too much" if content else ended})


def limit(memory: int, seconds: int) -> None:
    """Limit this process to so many bytes more than it has, and to so many seconds, of the clock ten times as many."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(10 * seconds)


def read(path: str) -> dict[str, Any]:
    """All variables of a file, or the error."""
    from scipy.io import loadmat  # late: `matlab` imports this module to start it, and needs no scipy

    try:
        content = loadmat(path)
        return {"variables": {name: plain(value) for name, value in content.items() if not name.startswith("__")}}
    except MemoryError:
        return {"error": "it needs too much memory"}
    except Exception as error:  # scipy raises what it happens to stumble over
        return {"error": f"scipy cannot read it ({str(error)[:200]})"}


def plain(value: Any, depth: int = 0) -> Any:
    """A matrix as plain data: its shape, and its content by kind; what is of another kind, or too deep, has none.

    Within a cell or struct one number or word stands for itself: annotations have a hundred thousand of them.
    """
    kind = value.dtype.kind if type(value) is np.ndarray else ""  # not the classes that scipy has for all else
    if depth and kind in _PLAIN and value.size == 1:
        return value.item()
    shape = list(getattr(value, "shape", ()))
    if kind in _PLAIN:
        return {"shape": shape, _PLAIN[kind]: value.ravel().tolist()}
    if kind == "V" and depth < DEEPEST:
        columns = {name: [plain(each, depth + 1) for each in value[name].ravel()] for name in value.dtype.names}
        return {"shape": shape, "fields": columns}
    if kind == "O" and depth < DEEPEST:
        return {"shape": shape, "cells": [plain(each, depth + 1) for each in value.ravel()]}
    return {"shape": shape}


if __name__ == "__main__":
    main()
