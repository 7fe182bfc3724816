"""What the nodes of tests start in place of Ray's own start of a worker: it is a fork of tests/warm.py, and this waits.

Ray, torch and a first training take four seconds of processor in each worker, and each driver and each node has others.
How Ray starts them itself is tested by the lines of README (tests/docs/test_laptop_to_cluster.py).
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from tests import warm

NODES = "DML_TESTS_NODES"  # the environment variable that names a folder: by process id of a worker, that of its raylet
SETUP = ("--language", "--serialized-runtime-env-context")  # what the start of a worker takes, and not the worker


def main() -> None:
    """Begin the worker, and end as it does; it ends with its node."""
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
