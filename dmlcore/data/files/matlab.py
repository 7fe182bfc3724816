"""Reader of MATLAB annotation files (.mat, version 5) with numbers, strings, cells and structs; refuses other types.

scipy reads the files in a separate process (`matlab_worker`), because some damaged files crash the interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import subprocess
import sys
import threading
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
_Matrix = dict[str, Any]  # keys: "shape", and at most one of "numbers", "words", "cells", "fields" with the content


class _MalformedError(ValueError):
    """Error for a malformed entry of a .mat file; its message becomes a part of the message of a DataError."""


class Variables:
    """Variables of a .mat file, accessed by expected type; error messages name file, variable and entry."""

    def __init__(self, path: Path, info: Description, variables: dict[str, _Matrix]) -> None:
        self.path, self._info, self._variables = path, info, variables

    def integers(self, name: str) -> Ints:
        """Return the numeric variable `name` (N,) as int64, because small integer types in the file could overflow."""
        matrix = self._variable(name)
        try:
            return _whole(matrix)
        except _MalformedError as error:
            raise self._error(name, error) from error

    def words(self, name: str) -> tuple[str, ...]:
        """Return the cell array of strings named `name` as a tuple."""
        return tuple(self._word(name, row, cell) for row, cell in enumerate(self._content(name, "cells"), start=1))

    def has_field(self, name: str, field: str) -> bool:
        """Return True if the struct array `name` has the field `field`."""
        return field in self._content(name, "fields")

    def field_integers(self, name: str, field: str) -> Ints:
        """Return the values (N,) of the field `field` in the struct array `name` as int64."""
        entries = enumerate(self._column(name, field), start=1)
        return np.array([self._integer(f"{name}.{field}", row, entry) for row, entry in entries], np.int64)

    def field_words(self, name: str, field: str) -> tuple[str, ...]:
        """Return the values of the field `field` in the struct array `name` as strings."""
        entries = enumerate(self._column(name, field), start=1)
        return tuple(self._word(f"{name}.{field}", row, entry) for row, entry in entries)

    def _variable(self, name: str) -> _Matrix:
        if name not in self._variables:
            there = ", ".join(sorted(self._variables)) or "none"
            raise DataError(
                f"{self.path} lacks the variable {name!r} (it has {there}); restore it from {self._info.url}"
            )
        return self._variables[name]

    def _content(self, name: str, kind: str) -> Any:
        matrix = self._variable(name)
        try:
            return _row(matrix, kind)
        except _MalformedError as error:
            raise self._error(name, error) from error

    def _column(self, name: str, field: str) -> list[_Matrix | float | str]:
        fields: dict[str, list[_Matrix | float | str]] = self._content(name, "fields")
        if field not in fields:
            raise self._error(name, f"field {field!r} is missing; there are: {', '.join(fields) or 'none'}")
        return fields[field]

    def _integer(self, name: str, row: int, entry: _Matrix | float | str) -> int:
        if type(entry) is int and abs(entry) < 2**63:  # nearly all entries
            return entry
        try:
            values = _whole(entry if isinstance(entry, dict) else _alone(entry))
            if len(values) != 1:
                raise _MalformedError(f"{len(values)} numbers instead of one")
        except _MalformedError as error:
            raise self._error(f"{name}, entry {row}", error) from error
        return int(values[0])

    def _word(self, name: str, row: int, entry: _Matrix | float | str) -> str:
        if not isinstance(entry, str) or not entry.strip():
            raise self._error(f"{name}, entry {row}", "expected text")
        return entry.strip()

    def _error(self, where: str, what: object) -> DataError:
        return DataError(f"{self.path}: {where}: {what}; restore it from {self._info.url}")


def read(path: Path, info: Description) -> Variables:
    """Read a .mat file of the data set `info`, without executing code from it; raise DataError naming the file."""
    if not path.is_file():
        raise DataError(f"{path} is missing; restore it from {info.url}")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise DataError(f"{path} has {size:,} bytes, above the limit of {MAX_BYTES:,}; it is not an annotation file")
    with open(path, "rb") as file:
        header = file.read(_HEADER)
    if header[126:] not in (b"IM", b"MI"):
        kind = (
            "a file of version 7.3 (HDF5)"
            if header.startswith(b"MATLAB 7.3")
            else "truncated or a different kind of file"
        )
        raise DataError(f"{path} is not a .mat file of version 5 but {kind}; restore it from {info.url}")
    answer = _worker.ask([str(path.resolve()), MEMORY, SECONDS])
    if "error" in answer:
        raise DataError(f"{path} is damaged: {answer['error']}; restore it from {info.url}")
    return Variables(path, info, answer["variables"])


_KINDS = {"numbers": "not real numbers", "cells": "not a cell array", "fields": "not a struct array"}


def _row(matrix: _Matrix, kind: str) -> Any:
    """Return the content of a row or column vector; raise _MalformedError for other shapes or another `kind`."""
    if kind not in matrix:
        raise _MalformedError(_KINDS[kind])
    size = math.prod(matrix["shape"])
    if size == 0 or size != max(matrix["shape"]):
        raise _MalformedError(f"shape {' x '.join(map(str, matrix['shape']))} instead of one row of entries")
    return matrix[kind]


def _alone(value: float | str) -> _Matrix:
    return {"shape": [1, 1], "words" if isinstance(value, str) else "numbers": [value]}


def _whole(matrix: _Matrix) -> Ints:
    values = np.array(_row(matrix, "numbers"))
    if values.dtype.kind == "f" and not (np.abs(values) < 2**53).all():  # also rejects NaN
        raise _MalformedError("expected whole numbers")
    whole = values.astype(np.int64)
    if wrong := np.flatnonzero(whole != values).tolist():
        raise _MalformedError(f"expected whole numbers, got {values[wrong[0]]} at position {wrong[0] + 1}")
    return whole


class _Worker:
    """Client of the worker process, which is started on first use and restarted if it has exited."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop the reference to the worker process and its pipes without ending it; called in a forked child."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: list[str | int]) -> dict[str, Any]:
        """Send a request to the worker and return its reply; raise DataError if the worker does not reply."""
        with self._lock:
            # Retry once: the worker exits after a minute without requests, and may do so while this request is being
            # sent.
            for _ in range(2):
                with contextlib.suppress(OSError):
                    if answer := self._answer(json.dumps(question).encode() + b"\n"):
                        reply: dict[str, Any] = json.loads(answer)
                        return reply
                self.end()
        raise DataError(f"{question[0]} cannot be read: the process that reads .mat files failed to start")

    def _answer(self, line: bytes) -> bytes:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", matlab_worker.__file__],
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # single-threaded, because the worker forks
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def end(self) -> None:
        """Kill the worker process if it is running."""
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(OSError):  # the pipe may be closed
                self._process.communicate()
            self._process = None


_worker = _Worker()
atexit.register(_worker.end)
os.register_at_fork(after_in_child=_worker.forget)
