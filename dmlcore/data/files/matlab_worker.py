"""Worker process of `matlab`: scipy reads each .mat file in a forked process, because damaged files crash it.

A line of its input is JSON: path, memory in bytes, CPU time in seconds. A line of its output is a JSON object of all
variables, or the reason why there is none. It ends with its input, or after a minute without questions. It imports no
module of this library, so that it starts quickly.
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

IDLE = 60  # seconds without questions
LONGEST = 2**28  # bytes of an answer
_PLAIN = {**dict.fromkeys("biuf", "numbers"), "U": "words"}  # numpy kinds
DEEPEST = 2  # a cell or struct holds numbers and words; deeper nesting is not followed


def main() -> None:
    """Answer each input line."""
    importlib.import_module("scipy.io")  # once, before all forks

    while True:
        signal.alarm(IDLE)
        line = sys.stdin.readline()
        signal.alarm(0)
        if not line:
            return
        print(answer(*json.loads(line)), flush=True)


def answer(path: str, memory: int, seconds: int) -> str:
    """Return the answer of a process that is forked for this file, or how that process ended."""
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
    os.kill(child, signal.SIGKILL)  # a process that writes more would wait forever; one that has ended is not affected
    _, status = os.waitpid(child, 0)
    if content and len(content) < LONGEST:
        return content.decode()
    ended = f"scipy ended by {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else "scipy gave up"
    return json.dumps({"error": "it holds too much" if content else ended})


def limit(memory: int, seconds: int) -> None:
    """Limit this process to additional memory in bytes, to CPU time, and to ten times as much wall time."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(10 * seconds)


def read(path: str) -> dict[str, Any]:
    """Return all variables of a file, or the error."""
    from scipy.io import loadmat  # imported here because `matlab` imports this module and needs no scipy

    try:
        content = loadmat(path)
        return {"variables": {name: plain(value) for name, value in content.items() if not name.startswith("__")}}
    except MemoryError:
        return {"error": "it needs too much memory"}
    except Exception as error:  # scipy raises arbitrary exceptions for damaged files
        return {"error": f"scipy cannot read it ({str(error)[:200]})"}


def plain(value: Any, depth: int = 0) -> Any:
    """Return a matrix as plain data: its shape, and its content by kind; other kinds and deeper levels have no content.

    Within a cell or struct a single number or word is returned itself, because annotations have a hundred thousand of
    them.
    """
    kind = value.dtype.kind if type(value) is np.ndarray else ""  # not the classes that scipy uses for other types
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
