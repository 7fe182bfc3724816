"""What the nodes of tests start in place of the two agents of Ray, which take half a second of processor each.

Nobody asks them: one would tell how a node fares, the other prepare environments for tasks that ask for one. In the
folder of the session they tell their ports, which lets the node begin. This ends with its node, and a node with this.
"""

import os
import select
import sys
from pathlib import Path


def main() -> None:
    """Say that there are no ports, and wait for the end of the node."""
    session, node, *ports = sys.argv[1:]
    for port in ports:
        part = Path(session, f"{port}_{node}.part")
        part.write_text("-1")
        part.rename(part.with_suffix(""))
    select.select([os.pidfd_open(os.getppid())], [], [])


if __name__ == "__main__":
    main()
