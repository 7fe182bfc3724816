"""Execution of the command line within the process of a test."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys

import pytest

from dmlcore.cli.main import main


def here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Return output and status of `python -m dmlcore` for commands that train nothing; saves two seconds of processor
    time.
    """
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setenv("DML_RUNS", "")  # set by the command
        patch.setattr(sys, "argv", ["dmlcore", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    status = ended.value.code
    assert isinstance(status, int)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())
