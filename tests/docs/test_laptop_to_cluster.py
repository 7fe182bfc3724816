"""Every line of "From laptop to cluster" (docs/cluster.md) runs, with fewer steps and stand-ins for other machines.

Ray is started by its own line, on a free port; SLURM is submitit's local executor.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from dmlcore.cli.main import app
from dmlcore.storage.runs import RunStore

ROOT = Path(__file__).parents[2]
SECTION = (
    (ROOT / "docs" / "cluster.md").read_text("utf-8").partition("## From laptop to cluster")[2].partition("\n## ")[0]
)
LINES = [line for block in re.findall(r"```bash\n(.*?)```", SECTION, re.S) for line in block.splitlines()]
(TOKEN,) = (line for line in LINES if "get-auth-token" in line)
STARTS = [line for line in LINES if " ray start " in line]
LITTLE = ["batch.classes=4", "batch.samples=2", "schedule.steps=10", "schedule.validate_every=10"]
LITTLE_OF = {"train": LITTLE, "search": LITTLE, "study": LITTLE, "protocol": LITTLE}


def needs(line: str) -> str:
    """Return the package that a line needs."""
    return "ray" if "ray" in line else "submitit" if "slurm" in line else ""


@pytest.fixture(scope="module")
def ray_address() -> Iterator[str]:
    """Yield the address of nodes that run in the foreground, so that exactly these are stopped afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="dml-")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    more = {"HOME": folder, "PATH": path, "RAY_AUTH_MODE": "token"}  # a separate token
    more |= {"RAY_TMPDIR": folder, "PYTHONPATH": str(ROOT), "RAY_worker_niceness": "0", "OMP_NUM_THREADS": "1"}
    more["RAY_ADDRESS"] = f"127.0.0.1:{port}"
    environment = pytest.MonkeyPatch()
    for name, value in (more | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}).items():
        environment.setenv(name, value)
    subprocess.run(["sh", "-c", TOKEN], check=True, stderr=subprocess.DEVNULL)
    from ray._private.authentication_test_utils import reset_auth_token_state

    reset_auth_token_state()  # read when Ray was imported
    nodes = []
    for line in STARTS:
        words = line.replace("6379", str(port)).partition(" ray ")[2].split()
        words += ["--block", "--object-store-memory", str(80 * 2**20), "--include-log-monitor", "false"]
        words += ["--port", str(port), "--no-monitor"] if "--head" in words else []
        command = [sys.executable, "-m", "ray.scripts.scripts", *words]
        mode = "token" if line.startswith("RAY_AUTH_MODE=token ") else "disabled"
        own = os.environ | {"RAY_AUTH_MODE": mode}
        nodes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True, env=own))
        until_it_answers(port)
    try:
        assert refuses_strangers(port)
        yield f"127.0.0.1:{port}"
    finally:
        import ray

        ray.shutdown()
        for node in reversed(nodes):
            node.send_signal(signal.SIGTERM)
        for node in nodes:
            node.wait(60)
        shutil.rmtree(folder, ignore_errors=True)
        environment.undo()
        reset_auth_token_state()


def refuses_strangers(port: int) -> bool:
    """Return True if another account without the token is refused."""
    code = f"import ray; ray.init(address='127.0.0.1:{port}')"
    with tempfile.TemporaryDirectory() as home:
        stranger = os.environ | {"HOME": home, "RAY_AUTH_MODE": "disabled"}
        ended = subprocess.run([sys.executable, "-c", code], env=stranger, capture_output=True, text=True, check=False)
    return ended.returncode != 0 and "Failed to connect to Ray cluster" in ended.stderr


def until_it_answers(port: int) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "Ray does not respond"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("laptop")


@pytest.mark.parametrize("line", [line for line in LINES if line not in (TOKEN, *STARTS)])
def test_a_line_of_the_way_runs(
    line: str,
    folder: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = needs(line)
    if package and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    address = request.getfixturevalue("ray_address") if package == "ray" else ""
    if package == "submitit":
        from dmlcore.jobs.backends.slurm_engine import SlurmEngine

        monkeypatch.setattr(SlurmEngine.__init__, "__defaults__", ("local",))
    store = RunStore(folder / "runs")
    monkeypatch.setenv("DML_RUNS", str(store.root))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    photographs = folder / "photographs"  # two classes
    stands_for = {
        "photographs": str(photographs),
        "10.0.0.1:6379": address,
        "/shared/runs": str(store.root),
    }
    for printed, here in stands_for.items():
        line = line.replace(printed, here)
    before = {run.id for run in store.list()}
    _, command, *words = shlex.split(line)
    newest = store.list()[0].id if before else ""
    words = [newest if word == "RUN" else word for word in words] + LITTLE_OF.get(command, [])
    if command == "data":
        for name in ("a/1.png", "a/2.png", "b/1.png", "b/2.png"):
            (photographs / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8)).save(photographs / name)
    else:
        words += ["--runs", str(store.root)]
    answer = CliRunner().invoke(app, [command, *words])
    assert answer.exit_code == 0, (line, answer.output, answer.exception)
    made = [run for run in store.list() if run.id not in before]
    assert bool(made) == (command in LITTLE_OF)
    for run in made:
        state = run.state()
        assert (state.state, state.processes) == ("done", 2 if "--processes" in words else 1)
        assert bool(state.backend) == ("--backend" in words)
