"""Reader of MATLAB annotation files (.mat, version 5) with numbers, strings, cells and structs; refuses other types.

scipy reads each file in its own process (`matlab_worker`), because some damaged files crash the interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dmlcore.data.dataset import DataError, Description
from dmlcore.data.files import matlab_worker
from dmlcore.typing import Ints

MAX_BYTES = 64 * 2**20  # maximum size of a .mat file; the largest official annotations have 6 MiB unpacked
MEMORY = 2**30  # memory limit for reading one file, in bytes
SECONDS = 30  # limit of CPU time for reading one file, in seconds
_HEADER = 128


class Variables:
    """Variables of a .mat file by name, fields of struct arrays as "name.field"; errors name file and entry."""

    def __init__(self, path: Path, info: Description, variables: dict[str, list[Any] | str]) -> None:
        self.path, self._info, self._variables = path, info, variables

    def __contains__(self, name: str) -> bool:
        return name in self._variables

    def integers(self, name: str) -> Ints:
        """Return the whole numbers of a variable or field, shape (N,), as int64."""
        values = self._entries(name)
        for row, value in enumerate(values, start=1):
            if not isinstance(value, int | float) or not abs(value) < 2**53 or value != int(value):
                raise self._error(f"{name}, entry {row}", f"expected a whole number, got {value!r:.80}")
        return np.array(values, np.int64)

    def words(self, name: str) -> tuple[str, ...]:
        """Return the strings of a cell array or field, without surrounding white space."""
        values = self._entries(name)
        for row, value in enumerate(values, start=1):
            if not isinstance(value, str) or not value.strip():
                raise self._error(f"{name}, entry {row}", f"expected text, got {value!r:.80}")
        return tuple(value.strip() for value in values)

    def _entries(self, name: str) -> list[Any]:
        values = self._variables.get(name, f"missing; the file has {', '.join(sorted(self._variables)) or 'nothing'}")
        if isinstance(values, str):
            raise self._error(name, values)
        return values

    def _error(self, where: str, what: str) -> DataError:
        return DataError(f"{self.path}: {where}: {what}; restore it from {self._info.url}")


def read(path: Path, info: Description) -> Variables:
    """Read a .mat file of the data set `info`, without executing code from it; raise DataError naming the file."""
    if not path.is_file():
        raise DataError(f"{path} is missing; restore it from {info.url}")
    status = path.stat()
    if status.st_size > MAX_BYTES:
        raise DataError(
            f"{path} has {status.st_size:,} bytes, above the limit of {MAX_BYTES:,}; it is not an annotation file"
        )
    with path.open("rb") as file:
        header = file.read(_HEADER)
    if header[126:] not in (b"IM", b"MI"):
        is_hdf5 = header.startswith(b"MATLAB 7.3")
        kind = "a file of version 7.3 (HDF5)" if is_hdf5 else "truncated or a different kind of file"
        raise DataError(f"{path} is not a .mat file of version 5 but {kind}; restore it from {info.url}")
    reply = _contents(path.resolve(), status.st_size, status.st_mtime_ns, MEMORY)
    if "error" in reply:
        raise DataError(f"{path} is damaged: {reply['error']}; restore it from {info.url}")
    return Variables(path, info, reply["variables"])


@lru_cache(8)
def _contents(path: Path, size: int, modified: int, memory: int) -> dict[str, Any]:
    """Return the reply of `matlab_worker`; `size` and `modified` identify the version of the file that is cached."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", matlab_worker.__file__, str(path), str(memory), str(SECONDS)],
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # each further thread reserves memory
            capture_output=True,
            timeout=10 * SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"scipy took more than {10 * SECONDS} seconds"}
    if done.returncode < 0:
        return {"error": f"scipy was terminated by {signal.Signals(-done.returncode).name}"}
    try:
        reply: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"error": "scipy failed"}
    return reply
