"""Crash of a machine with 2 running and 20 queued runs: `python -m dmlcore recover` must resume each of them once.

All processes are killed with SIGKILL at the same time, and two recoveries start concurrently. Afterwards every run is
checked: it was resumed once and trained by one process, and no step is missing or repeated. Baseline: without recovery,
no run continues.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks.harness import command_line
from tests.faults import crash


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--queued", type=int, default=20)
    parser.add_argument("--running", type=int, default=2)
    arguments = parser.parse_args()
    os.environ["DML_CPU_RUNS"] = str(arguments.running)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        print(crash.after_a_crash(Path(folder), arguments.queued, arguments.running))


if __name__ == "__main__":
    main()
