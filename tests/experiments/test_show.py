"""`dmlcore.show` stores a set, starts the app once and returns a handle."""

import os
import signal
import urllib.request

import numpy as np
import pytest

import dmlcore
from dmlcore.experiments import show as showing
from dmlcore.inspection import selections
from dmlcore.jobs import local_app
from dmlcore.jobs.local_app import AppError, LocalApp
from dmlcore.storage.runs import RunError, RunStore
from tests.browser.harness import eventually, free_port
from tests.made_runs import make_finished_run

E = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
L = np.arange(20) % 4


@pytest.fixture
def opened(monkeypatch):
    """Replace app and browser; return the addresses that were opened."""
    addresses: list[str] = []
    monkeypatch.setattr(local_app, "ensure", lambda root: LocalApp(8503, 77))
    monkeypatch.setattr(showing.webbrowser, "open", addresses.append)
    monkeypatch.setenv("DISPLAY", ":0")
    return addresses


def test_a_set_is_stored_scored_and_opened(opened, tmp_path, capsys):
    handle = dmlcore.show(E, L, metadata={"sku": range(20)}, name="mine", runs=tmp_path)
    assert opened == [handle.url] == [f"http://127.0.0.1:8503/explore?run={handle.run.id}"]
    assert handle.run.spec.name == "mine"
    assert handle.run.path.parent == tmp_path
    assert 0 <= handle.scores.recall_at_1 <= 1
    text = capsys.readouterr().out
    assert handle.url in text
    assert "kill 77" in text


@pytest.mark.parametrize("screen", [True, False])
def test_no_browser_is_opened_without_a_screen_or_against_the_wish(opened, tmp_path, capsys, monkeypatch, screen):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER") if not screen else ():
        monkeypatch.delenv(name, raising=False)
    handle = dmlcore.show(E, runs=tmp_path, open_browser=not screen)
    assert opened == []
    assert handle.url in capsys.readouterr().out


def test_images_in_memory_outlive_the_call(opened, tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (20, 8, 8, 3), np.uint8)
    handle = dmlcore.show(E, L, pixels, runs=tmp_path)
    images = [*handle.run.path.glob("set/images/*.png")]
    assert len(images) == 20


def test_a_stored_set_is_opened_again(opened, tmp_path):
    first = dmlcore.show(E, L, runs=tmp_path)
    selections.save(first.run, [4], "lasso on the map")
    for again in (dmlcore.show(first.run.id, runs=tmp_path), dmlcore.show(first.run)):
        assert again.run.id == first.run.id
        assert again.selection.tolist() == [4]
    assert len(RunStore(tmp_path).list()) == 1
    with pytest.raises(RunError, match="not an embedding set"):
        dmlcore.show(make_finished_run(RunStore(tmp_path), [], 0.5))


def test_without_the_app_the_handle_works_and_the_remedy_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(local_app, "ensure", lambda root: (_ for _ in ()).throw(AppError("No app. Run: dml serve")))
    handle = dmlcore.show(E, L, runs=tmp_path)
    assert handle.neighbours(3)[1].shape == (20, 3)
    text = capsys.readouterr().out
    assert "No app. Run: dml serve" in text
    assert f"When the app runs, open {handle.url}" in text


def test_the_real_app_is_started_once_and_serves_the_set(tmp_path, monkeypatch):
    """The second call uses the app of the first one, and an app of another store is not used."""
    ports, apps, ensure = (free_port(),), [], local_app.ensure
    monkeypatch.setattr(local_app, "ensure", lambda root: apps.append(ensure(root, ports)) or apps[-1])
    try:
        first = dmlcore.show(E, L, runs=tmp_path / "runs", open_browser=False)
        second = dmlcore.show(E, runs=tmp_path / "runs", open_browser=False)
        assert [app.port for app in apps] == [*ports, *ports]
        assert apps[1].process is None
        assert first.url.split("?")[0] == second.url.split("?")[0]
        with urllib.request.urlopen(first.url) as page:
            assert page.status == 200
        assert local_app.find(tmp_path / "other", ports) is None
    finally:
        os.kill(apps[0].process, signal.SIGTERM)

    def is_gone() -> None:
        assert local_app.find(tmp_path / "runs", ports) is None

    eventually(is_gone)
