"""The command line in the process of a test."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys

import pytest

from dmlcore.cli.main import main


def here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What `python -m dmlcore` says and returns, for what trains nothing: two seconds of processor less."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setenv("DML_RUNS", "")  # which the command sets
        patch.setattr(sys, "argv", ["dmlcore", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    status = ended.value.code
    assert isinstance(status, int)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())
