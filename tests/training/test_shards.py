"""A run on a data set in shards equals the run on its files, byte for byte."""

import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dmlcore.data
from dmlcore.cli import workers
from dmlcore.data.shards import pack
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import loop
from tests.data import layouts
from tests.started import run_python
from tests.training.resumed import same_to_the_bit, trained

pytestmark = pytest.mark.processes

STEPS, KILLED_AT = 6, 4
SPEC = RunSpec().with_overrides(
    [
        *("data.name=sop", "data.image_size=32", "data.augment=true", "data.crop=resized"),
        *("model.name=conv4_32", "model.embedding_dim=8", "batch.classes=2", "batch.samples=4", "device=cpu"),
        *(f"schedule.steps={STEPS}", "schedule.checkpoint_every=2", "schedule.validate_every=3"),
    ]
)
DYING = """
import os, signal, sys
from pathlib import Path
from dmlcore.storage.runs import Run
from dmlcore.training import loop
run, left = Run(Path(sys.argv[1])), iter(range(int(sys.argv[2]), 0, -1))
with run.lock():
    loop.train(run, stop=lambda: next(left) == 1 and os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a folder of files and one of shards, with photographs that all differ."""
    folder = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(0)
    for image in sorted(layouts.sop(folder / "files" / "Stanford_Online_Products").rglob("[!.]*.JPG")):
        noise = random.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((random.integers(40, 80), 48), Image.Resampling.BICUBIC).save(image)
    pack.pack(
        "sop", dmlcore.data.read("sop", root=folder / "files"), folder / "shards" / "sop-shards", shard_bytes=9_000
    )
    assert len(list((folder / "shards" / "sop-shards").glob("*.tar"))) > 8
    return folder / "files", folder / "shards"


@pytest.fixture
def on(places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """Yield the locations that each store of images is read from, with different caches."""
    files, shards = places
    return {
        name: {"DML_DATA": str(data), "DML_CACHE": str(tmp_path / name), "DML_DECODED_GB": most}
        for name, data, most in (("files", files, "1"), ("shards", shards, "1"), ("streamed", shards, "0"))
    }


def use(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def embeddings(run: Run) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((run.path / "embeddings").iterdir())}


def test_runs_on_files_shards_and_streamed_shards_are_one(
    on: dict[str, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {}
    for name, environment in on.items():
        use(monkeypatch, environment)
        runs[name] = trained(RunStore(tmp_path / f"runs-{name}"), SPEC)
    for name in ("shards", "streamed"):
        same_to_the_bit(runs["files"], runs[name])
        assert len(embeddings(runs[name])) > 0
        assert embeddings(runs["files"]) == embeddings(runs[name])
    decoded = {name: list((tmp_path / name).glob("pictures/*/pixels")) for name in on}
    assert {name: len(kept) for name, kept in decoded.items()} == {"files": 1, "shards": 1, "streamed": 0}


def test_a_run_on_files_that_was_killed_goes_on_from_shards(
    on: dict[str, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path / "runs")
    use(monkeypatch, on["files"])
    whole = trained(store, SPEC)
    killed = store.create(SPEC)
    assert run_python("-c", DYING, str(killed.path), str(KILLED_AT)).returncode == -signal.SIGKILL
    saved = checkpoint.load(killed.path)
    assert 0 < saved.facts["step"] < STEPS
    use(monkeypatch, on["streamed"])
    with killed.lock():
        launch.prepare_resume(killed)
        assert loop.train(killed).state == "done"
    same_to_the_bit(whole, killed)
    assert embeddings(whole) == embeddings(killed)


def test_two_processes_read_shards_as_they_read_files(
    on: dict[str, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    for name in ("files", "streamed"):
        use(monkeypatch, on[name])
        runs.append(run := RunStore(tmp_path / "runs").create(SPEC))
        state = workers.train(run, processes=2)
        assert (state.state, state.processes) == ("done", 2), state.message
    same_to_the_bit(*runs)
    assert embeddings(runs[0]) == embeddings(runs[1])
