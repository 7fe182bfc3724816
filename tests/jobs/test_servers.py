import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dmlcore.jobs import servers
from dmlcore.jobs.servers import Server
from tests.started import until

REPOSITORY = Path(__file__).parents[2]
# Replaces the app, which takes seconds to start: writes its process ID for the test and keeps running.
STANDS_IN = """
import os, sys, time
from pathlib import Path
folder, address, port = sys.argv[1:]
Path(folder, port + ".tmp").write_text(f"{os.getpid()} {address} {os.environ.get('DML_TOKEN', '')}")
os.replace(Path(folder, port + ".tmp"), Path(folder, port))
time.sleep(600)
"""
KILLS_ITSELF = "import os; os.kill(os.getpid(), 9)"
SERVE = """
import sys
from dmlcore.jobs import servers
folder, address, *ports = sys.argv[1:]
servers.server_command = lambda address, port: [sys.executable, "-c", {stands_in!r}, folder, address, str(port)]
sys.exit(servers.serve(address, map(int, ports), {{}}, token="t" * 48))
"""


def wait_for(path: Path, unlike: str = "") -> list[str]:
    until(lambda: path.exists() and path.read_text() != unlike)
    return path.read_text().split(" ")


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("address", "setting", "token"),
    [("127.0.0.1", {}, ""), ("127.0.0.1", {"DML_TOKEN": "auto"}, "t" * 48), ("0.0.0.0", {}, "t" * 48)],
)
def test_each_server_starts_again_when_it_dies_and_all_end_together(tmp_path, address, setting, token):
    """With a token, all servers use the same one, also after a restart, so that users stay signed in."""
    arguments = [sys.executable, "-c", SERVE.format(stands_in=STANDS_IN), str(tmp_path), address, "1001", "1002"]
    environment = {key: value for key, value in os.environ.items() if key != "DML_TOKEN"} | setting
    serving = subprocess.Popen(arguments, cwd=REPOSITORY, env=environment)
    try:
        first, second = wait_for(tmp_path / "1001"), wait_for(tmp_path / "1002")
        assert first[1:] == second[1:] == [address, token]
        os.kill(int(first[0]), signal.SIGKILL)
        again = wait_for(tmp_path / "1001", unlike=" ".join(first))
        assert again[0] != first[0]
        assert again[1:] == [address, token]
        assert not gone(int(second[0]))
    finally:
        serving.terminate()
        assert serving.wait(120) == 0
    assert gone(int(again[0]))
    assert gone(int(second[0]))


def test_a_server_that_keeps_dying_is_started_ever_more_rarely(monkeypatch):
    monkeypatch.setattr(servers, "server_command", lambda address, port: [sys.executable, "-c", KILLS_ITSELF])
    server, now, starts = Server(1001), 0.0, []
    monkeypatch.setattr(servers.time, "monotonic", lambda: now)
    for _ in range(8):
        server.keep_running("127.0.0.1", os.environ)
        starts.append(now)
        server.process.wait()
        server.keep_running("127.0.0.1", os.environ)
        assert server.process is None
        now = server.due
    assert [b - a for a, b in itertools.pairwise(starts)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_server_that_gives_up_at_once_ends_all(monkeypatch):
    """A wrong setting: restarts would hide its message."""
    monkeypatch.setattr(servers, "server_command", lambda address, port: [sys.executable, "-c", "raise SystemExit(3)"])
    monkeypatch.setattr(servers.signal, "signal", lambda *_: None)
    assert servers.serve("127.0.0.1", [1001, 1002], {}, token="") == 1


def test_without_the_repository_there_is_no_app(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(servers, "APP", tmp_path / "app.py")
    assert servers.serve("127.0.0.1", [1001], {}, token="") == 1
    assert "there is no app" in capsys.readouterr().err
