"""Worker process of `matlab`: scipy reads each .mat file in a forked child, because damaged files can crash it.

Each input line is a JSON list: path, memory limit in bytes, CPU time limit in seconds. For each, the worker prints a
line with a JSON object that contains all variables of the file, or the reason why the file cannot be read. The worker
exits at the end of its input, or after a minute without requests. It imports no module of this library, so that it
starts quickly.
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

IDLE = 60  # seconds without requests until the worker exits
LONGEST = 2**28  # maximum size of a reply in bytes
# kind of a numpy dtype -> key under which `plain` stores the content
_PLAIN = {**dict.fromkeys("biuf", "numbers"), "U": "words"}
DEEPEST = 2  # maximum nesting depth: a cell or struct may hold numbers and strings, but deeper content is omitted


def main() -> None:
    """Read requests from standard input and print one reply per request until the input ends."""
    importlib.import_module("scipy.io")  # once, before all forks

    while True:
        signal.alarm(IDLE)
        line = sys.stdin.readline()
        signal.alarm(0)
        if not line:
            return
        print(answer(*json.loads(line)), flush=True)


def answer(path: str, memory: int, seconds: int) -> str:
    """Read a file in a forked child and return its JSON reply, or a JSON error if the child failed."""
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
    os.kill(child, signal.SIGKILL)  # ends a child that writes more than LONGEST bytes and would otherwise block forever
    _, status = os.waitpid(child, 0)
    if content and len(content) < LONGEST:
        return content.decode()
    ended = (
        f"scipy was terminated by {signal.Signals(os.WTERMSIG(status)).name}"
        if os.WIFSIGNALED(status)
        else "scipy failed"
    )
    return json.dumps({"error": "its contents are too large" if content else ended})


def limit(memory: int, seconds: int) -> None:
    """Limit this process to `memory` additional bytes, `seconds` of CPU time, and 10 * `seconds` of wall time."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(10 * seconds)


def read(path: str) -> dict[str, Any]:
    """Return {"variables": all variables of a file}, or {"error": message} if it cannot be read."""
    from scipy.io import loadmat  # imported only here, because `matlab` imports this module without needing scipy

    try:
        content = loadmat(path)
        return {"variables": {name: plain(value) for name, value in content.items() if not name.startswith("__")}}
    except MemoryError:
        return {"error": "it needs too much memory"}
    except Exception as error:  # scipy raises arbitrary exceptions for damaged files
        return {"error": f"scipy cannot read it ({str(error)[:200]})"}


def plain(value: Any, depth: int = 0) -> Any:
    """Convert a matrix to JSON data: its shape and its content.

    The content is omitted if its type is unsupported or if it is nested too deeply.

    Within a cell or struct, a single number or string becomes a scalar, because annotations contain a hundred thousand
    such entries.
    """
    # "" for the ndarray subclasses that scipy uses for other types
    kind = value.dtype.kind if type(value) is np.ndarray else ""
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
