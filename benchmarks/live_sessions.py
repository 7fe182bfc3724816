"""Number of live sessions on one server with few file descriptors: 300 at `ulimit -n 1024`, soft and hard.

First, --gone user sessions are opened and closed (Streamlit keeps the last 128 of them). Then sessions are opened one
after another and kept open. Each is a real session: its page has run and its field socket responds. At the end every
session must respond once more. The script prints the server's open descriptors after each phase. With a third component
in `--limit`, as in 1024:1024:stock, the server runs without `pages/shared/server/descriptors.py`, which is the
baseline.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
from pathlib import Path

from benchmarks.browser import Server
from benchmarks.harness import ROOT, command_line
from benchmarks.sessions import COARSE, Visitor

STOCK = """from pages.shared.server import descriptors
descriptors.raise_limit = lambda: None
descriptors.SessionLoopPolicy = __import__("asyncio").DefaultEventLoopPolicy
"""


async def leave(visitor: Visitor) -> None:
    """Close the sockets of a user session, as closing the browser tab does."""
    for opened in (visitor.page, visitor.field):
        if opened is not None:
            await opened.close()


async def measure(server: Server, gone: int, live: int) -> int:
    """Open `gone` sessions and close them, then open `live` sessions; return how many of these respond at the end."""
    start = server.open_descriptors()
    for _ in range(gone):
        visitor = Visitor(server.url)
        await visitor.arrive(fields=True)
        await leave(visitor)
    await asyncio.sleep(1)
    rest = server.open_descriptors()
    print(f"descriptors: {start} at the start, {rest} after {gone} visits", flush=True)
    visitors: list[Visitor] = []
    try:
        for _ in range(live):
            async with asyncio.timeout(60):
                visitor = Visitor(server.url)
                await visitor.arrive(fields=True)
                await visitor.ask(COARSE)
            visitors.append(visitor)
    except Exception as error:  # A refused session is a result of the benchmark, no matter which error was raised.
        print(f"visitor {len(visitors) + 1} was refused: {type(error).__name__}")
    held = server.open_descriptors()
    each = (held - rest) / max(len(visitors), 1)
    print(f"descriptors: {held} with {len(visitors)} live sessions, {each:.1f} each", flush=True)
    answered = 0
    for visitor in visitors:
        async with asyncio.timeout(60):
            await visitor.rerun()
            await visitor.ask(COARSE)
        answered += 1
    return answered


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--limit", nargs="+", default=["1024:1024"], help="soft:hard or soft:hard:stock")
    parser.add_argument("--gone", type=int, default=130)
    parser.add_argument("--live", type=int, default=300)
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Raise the descriptor limit of this process, which holds the client side of all sessions.
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    short = False
    for limit in arguments.limit:
        soft, hard, *stock = limit.split(":")
        with tempfile.TemporaryDirectory() as folder:
            script = ROOT / "app.py"
            if stock:
                script = Path(folder) / "app.py"
                app = (ROOT / "app.py").read_text().replace("Path(__file__).resolve().parent", f"Path({str(ROOT)!r})")
                script.write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{STOCK}{app}")
            server = Server(Path(folder) / "runs", script=script, descriptors=(int(soft), int(hard))).start()
            print(f"soft limit {soft}, hard limit {hard}{', without our descriptors.py' if stock else ''}", flush=True)
            try:
                answered = asyncio.run(measure(server, arguments.gone, arguments.live))
            finally:
                server.kill()
        print(f"{answered} of {arguments.live} sessions live and answering\n", flush=True)
        short |= not stock and answered < arguments.live
    sys.exit(short)


if __name__ == "__main__":
    main()
