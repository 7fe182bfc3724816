"""A machine goes down with 2 runs at work and 20 in the queue: `python -m dmlcore recover` resumes each of them once.

All processes are killed with -9 at once, two recoveries begin at the same time, and every run is looked at afterwards:
resumed once, trained by one process, no step missing or doubled. Rival: without it, none of them goes on.
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
