"""The data page without a browser: data that is present, missing, damaged or hostile; its link and background jobs."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from functools import partial
from html import escape
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dmlcore import data
from dmlcore.data import checks
from dmlcore.data.files import sources
from dmlcore.data.printable import printable
from dmlcore.data.shards import pack
from dmlcore.jobs import launch
from dmlcore.storage.runs import RunStore
from dmlcore.storage.task import ProgressState
from pages.shared.state import spec_link
from pages.training.new_run.data import links, samples
from pages.training.new_run.data import service as data_service
from pages.training.new_run.data.service import DataKey, SplitSettings
from tests.data import layouts
from tests.members import in_one_case
from tests.pages.conftest import load_page
from tests.wording import says

HOSTILE = "<img src=x onerror=alert(1)>&\u202edrow"


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DML_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    # ignore packs of this machine
    monkeypatch.setattr("dmlcore.data.files.locate.HOME", tmp_path / "elsewhere" / "main")
    data_service.clear_caches()


@pytest.fixture
def open_page():
    return partial(load_page, "data")


@pytest.fixture
def tree(tmp_path) -> Path:
    """Create four classes of four images; the first has a hostile name."""
    for number, name in enumerate((HOSTILE.replace("/", "-"), "b", "c", "d")):
        for i in range(4):
            path = tmp_path / "tree" / name / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (20, 16), (60 * number, 50 * i, 7)).save(path)
    return tmp_path / "tree"


def texts(app: AppTest) -> str:
    return "\n".join(element.value for kind in ("text", "markdown", "caption", "code") for element in app.get(kind))


def test_a_set_that_is_present_shows_splits_classes_images_and_goes_to_training(open_page):
    app = open_page(data="toy")
    assert not app.exception
    assert "train-first" not in [button.key for button in app.button], "a data set has been chosen"
    assert [metric.value for metric in app.metric] == ["2,400", "800", "3,200"]
    table, classes = (frame.value for frame in app.dataframe)
    assert len(classes) == 32
    assert table["here"].tolist().count("absent") == sum(data.describe(name).needs_files for name in data.names())
    app.number_input(key="data-folds-toy").set_value(4).run()
    assert app.metric[1].value == "800"
    app.number_input(key="data-fold-toy-4").set_value(2).run()
    app.number_input(key="data-folds-toy").set_value(40).run()
    assert says(texts(app), "40", "80"), "an impossible split must be reported"
    assert app.query_params["data"] == "toy"


def onward(app: AppTest) -> dict[str, str]:
    """Return the query of the link to step 2, or {} if the link is disabled."""
    (link,) = (link.proto for link in app.get("page_link") if link.proto.label == "Next: settings")
    return {} if link.disabled else dict(parse_qsl(link.query_string))


def test_the_way_on_carries_the_settings_as_they_are_until_other_data_are_chosen(open_page):
    app = open_page(base="toy", set="loss.name=contrastive;data.validation=none")
    assert app.selectbox(key="data-validation-toy").value == "none"  # from the link
    assert spec_link.linked(onward(app)).loss.name == "contrastive"
    assert "no test class is in the training split" in texts(app)
    app.selectbox(key="data-split-toy").select("samples").run()
    assert "new samples of the training classes" in texts(app)
    spec = spec_link.linked(onward(app))
    assert (spec.data.name, spec.data.split, spec.data.validation) == ("toy", "samples", "none")
    app.selectbox(key="data-set").select("cub").run()
    assert onward(app) == {}, "there is no data to train on"


def test_the_first_offer_trains_on_unseen_classes_by_one_press(open_page, monkeypatch):
    monkeypatch.setattr(launch, "start_process", lambda run, task: None)  # start no process
    app = open_page()
    assert not app.exception
    assert "144 characters" in texts(app)
    app.button(key="train-first").click().run()
    assert not app.exception
    (run,) = RunStore().list()
    assert run.spec == spec_link.presets()["glyphs"]
    assert run.spec.data.split == "classes"
    assert app.title[0].value == "Runs"
    assert app.query_params["run"] in (run.id, [run.id])


def test_data_of_few_classes_come_with_batches_that_they_can_fill():
    at, cut = DataKey("digits_pictures", None, "", 0), SplitSettings("classes", "samples")
    spec = spec_link.linked(links.link(at, cut, data_service.split_report(at, cut).dataset))
    assert spec.batch.classes == 5


def test_a_folder_of_ones_own_stands_first_and_arrays_are_refused_at_once(open_page, tmp_path):
    app = open_page(data="<script>", base="toy")  # a link to nothing shows the default
    assert app.selectbox(key="data-set").value == "toy"
    offered = app.selectbox(key="data-set").options
    assert "folder of class folders" in offered[0]
    assert app.dataframe[0].value["data set"].tolist() == [title.partition(" (")[0] for title in offered]
    app.selectbox(key="data-set").select("folder").run()
    assert app.query_params["data"] == "folder"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "clip.npy").touch()
    app.text_input(key="data-root-folder").set_value(str(tmp_path / "mine")).run()
    assert not app.exception
    assert "clip.npy looks like an array" in texts(app)
    assert onward(app) == {}


def test_a_packed_set_says_how_many_shards_it_is_read_from(open_page, tmp_path):
    layouts.sop(tmp_path / "tree" / "Stanford_Online_Products")
    read = data.read("sop", root=tmp_path / "tree")
    size = pack.pack("sop", read, tmp_path / "data" / "sop-shards", shard_bytes=20_000)
    app = open_page(data="sop")
    assert not app.exception
    assert f"Packed into {size}." in texts(app)
    assert str(size).startswith(f"{size.shards} shards, ")
    assert str(tmp_path / "data" / "sop-shards") in texts(app)
    assert [split.value for split in app.metric] == ["16", "16", "32"]
    (tmp_path / "data" / "sop-shards" / "sop-00001.tar").unlink()
    data_service.clear_caches()
    assert "sop-00001.tar with" in texts(open_page(data="sop"))


@pytest.mark.parametrize(
    ("name", "words", "offers"), [("cub", "CUB_200_2011.tgz (1.15 GB)", True), ("cars", "", False)]
)
def test_a_set_that_is_absent_offers_the_download_or_says_where_to_put_it(open_page, tmp_path, name, words, offers):
    app = open_page(data=name)
    assert not app.exception
    assert all(part in texts(app) for part in (words, str(tmp_path / "data"), sources.SOURCES[name].layouts[0]))
    assert any(button.key == f"download-{name}" for button in app.button) == offers
    assert len(app.metric) == 0


def test_a_download_shows_its_progress_and_can_be_cancelled(open_page, monkeypatch):
    task = sources.task_of("cub")
    task.path.mkdir(parents=True)
    counts = {"done": 500_000_000, "total": 1_150_585_339, "rate": 2e6}
    task.record(ProgressState(message="downloading CUB_200_2011.tgz", queued=time.monotonic(), **counts))
    app = open_page(data="cub")
    assert not app.exception
    assert "500 MB of 1.15 GB, 2 MB per second, about 5 min" in app.get("progress")[0].proto.text
    app.button(key="cancel-download-cub").click().run()
    assert task.status() == "cancelled"
    assert "Finished work is kept" in texts(app)
    assert app.button(key="download-cub").label == "Resume downloading CUB-200-2011"


def test_a_damaged_set_says_what_failed_and_the_check_lists_it(open_page, tree):
    (tree / "b" / "1.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    app = open_page(data="folder")
    app.text_input(key="data-root-folder").set_value(str(tree)).run()
    app.selectbox(key="data-validation-folder").select("none").run()
    assert not app.exception
    assert [(m.label, m.value) for m in app.metric] == [("train", "8"), ("test", "8")]
    assert any("cannot be read" in html.proto.body for html in app.get("html"))
    checks.run("folder", str(tree))
    app.run()
    assert "1 of 16 images cannot be read, the first b/1.png" in texts(app)
    (tree / "b" / "1.png").unlink()
    app.run()
    assert not app.exception


def split(name: str, *settings: str, root: Path | None = None) -> tuple[DataKey, data.Dataset]:
    at = DataKey(name, str(root) if root else None, str(root or "."), 0)
    return at, data_service.split_report(at, SplitSettings(*settings)).dataset


def test_names_made_to_hurt_are_shown_as_they_are(tree):
    html = samples.images(*split("folder", "classes", "none", root=tree), "train", 0, ())
    assert "<img src=x" not in html
    assert html.count(escape(printable(HOSTILE))) >= 2
    assert f'<bdi title="{escape(printable(HOSTILE))}">' in html


def test_only_few_images_are_drawn_for_a_page(monkeypatch):
    drawn = []
    image = np.zeros((160, 160, 3), np.uint8)
    monkeypatch.setattr("dmlcore.data.synthetic.birds.birds.draw", lambda *a: drawn.append(1) or image)
    at, made = split("birds", "classes", "classes")
    for _ in range(3):
        samples.images(at, made, "train", 0, ())
    assert len(drawn) == samples.CLASSES * samples.EACH
    samples.images(at, made, "test", 0, list(range(36, 72)))
    assert len(drawn) == (samples.CLASSES + samples.MOST_SHOWN) * samples.EACH


@in_one_case(name=[name for name in data.names() if name != "folder"])
def test_the_link_to_training_is_a_spec_of_this_set(name):
    cut = SplitSettings("samples", "none") if name == "toy" else SplitSettings()
    spec = spec_link.linked(links.link(DataKey(name, None, "", 0, 3), cut))
    assert spec is not None
    assert (spec.data.name, spec.seed) == (name, 3)
    assert name != "toy" or (spec.data.split, spec.data.validation) == ("samples", "none")


def test_folds_and_folder_reach_the_link_and_the_command():
    at, cut = DataKey("cub", "/a b/c", "", 0, 7), SplitSettings("classes", "classes", 4, 2, "random")
    assert 'data.root="/a b/c"' in links.link(at, cut)["set"]
    assert "data.folds=4;data.fold=2;data.fold_order=random;data.fold_seed=7" in links.link(at, cut)["set"]
    words = "--folds 4 --fold 2 --fold-order random --seed 7"
    assert links.command(at, cut).endswith(words)


def test_sizes_of_classes_are_a_chart_unless_all_are_equal():
    toy = data.load("toy")
    assert samples.histogram(toy) is None
    uneven = dataclasses.replace(toy, splits={"train": toy.splits["train"][:250], "test": toy.splits["test"]})
    _, columns = samples.histogram(uneven)
    by_split = Counter()
    for split_name, number in zip(columns["split"], columns["classes"], strict=True):
        by_split[split_name] += number
    assert by_split == {"train": 2, "test": 16}
