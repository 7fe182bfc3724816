"""Replacement for Ray's start of a worker on test nodes: the worker is a fork of tests/warm.py, for which this waits.

Ray, torch and a first training run take four seconds of processor time in each worker, and each driver and node has its
own workers. Ray's own start is tested by the commands of the README (tests/docs/test_laptop_to_cluster.py).
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from tests import warm

# environment variable with a folder that maps process IDs of workers to those of their raylets
NODES = "DML_TESTS_NODES"
# arguments for the start of a worker, which the worker itself does not take
SETUP = ("--language", "--serialized-runtime-env-context")


def main() -> None:
    """Start the worker and exit with its status; it ends with its node."""
    worker = [argument for argument in sys.argv[2:] if not argument.startswith(SETUP)]
    begun = warm.popen([sys.executable, "-m", "ray._private.workers.default_worker", *worker], env=os.environ)
    raylet = os.getppid()
    (Path(os.environ[NODES]) / str(begun.pid)).write_text(str(raylet))
    while begun.poll() is None:
        if os.getppid() != raylet:  # its node is gone
            begun.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            begun.wait(1)
    sys.exit(begun.returncode)


if __name__ == "__main__":
    main()
