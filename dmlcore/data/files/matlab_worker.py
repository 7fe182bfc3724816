"""Program that reads a .mat file with scipy and prints its contents as JSON; `matlab` starts one process per file.

Its arguments are a path, the memory limit in bytes, and the limit of CPU time in seconds. It imports no module of this
library, so that it starts quickly.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

LONGEST = 2**28  # maximum length of the printed JSON in characters
_PLAIN = "biufU"  # kinds of numpy dtypes that hold real numbers or text


def main(path: str, memory: int, seconds: int) -> None:
    """Print {"variables": ...}, as described in `columns`, or {"error": message} if the file cannot be read."""
    from scipy.io import loadmat

    limit(memory, seconds)
    try:
        content = loadmat(path)
        variables = dict(column for name in content if name[:2] != "__" for column in columns(name, content[name]))
        reply = json.dumps({"variables": variables})
    except MemoryError:
        reply = json.dumps({"error": "it needs too much memory"})
    except Exception as error:  # scipy raises arbitrary exceptions for damaged files
        reply = json.dumps({"error": f"scipy cannot read it ({str(error)[:200]})"})
    print(reply if len(reply) < LONGEST else json.dumps({"error": "its contents are too large"}))


def limit(memory: int, seconds: int) -> None:
    """Limit this process to `memory` additional bytes and `seconds` of CPU time, and switch core dumps off."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def columns(name: str, value: Any) -> Iterator[tuple[str, list[Any] | str]]:
    """Yield a variable as a list of numbers and strings; a struct array yields one list per field, as "name.field".

    An entry that is neither a number nor a string is None. A variable that is no row of entries yields its defect.
    """
    if type(value) is not np.ndarray:  # scipy uses subclasses of ndarray for objects and functions
        yield name, "not numbers, text, cells or structs"
    elif value.size == 0 or value.size != max(value.shape):
        yield name, f"shape {' x '.join(map(str, value.shape))} instead of one row of entries"
    elif value.dtype.names:
        for field in value.dtype.names:
            yield f"{name}.{field}", [_entry(each) for each in value[field].ravel()]
    elif value.dtype.kind == "O":
        yield name, [_entry(each) for each in value.ravel()]
    else:
        yield name, value.ravel().tolist() if value.dtype.kind in _PLAIN else [None] * value.size


def _entry(value: Any) -> Any:
    is_plain = type(value) is np.ndarray and value.dtype.kind in _PLAIN and value.size == 1
    return value.item() if is_plain else None


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
