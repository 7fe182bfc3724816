"""The socket of toy training returns the library's steps, answers invalid messages, and links keep the whole state."""

from __future__ import annotations

import dataclasses
import json
import math
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore.metrics import retrieval
from dmlcore.replay import toy_runs
from dmlcore.replay.recorded_training import LiveTraining
from dmlcore.spec import RunSpec, SpecError
from pages.losses.toy_training import recording
from pages.losses.toy_training import scores as toys_scores
from pages.losses.toy_training import service as toys_service
from pages.losses.toy_training import state as toys_state
from pages.losses.toy_training.presets import PRESETS
from pages.losses.toy_training.state import LossSide, SidesChange, Toy
from pages.shared.server.websocket import MOST_BYTES
from pages.shared.server.wire import unpack
from pages.shared.state import spec_link
from pages.shared.timeline.history_cache import HistoryCache

SMALL = Toy(data="moons", dim=3, sides=(LossSide(), LossSide("contrastive", {"m_pos": 0.1, "m_neg": 0.5}, "pushes")))
FORK = SidesChange(3, (LossSide("facenet", {"m": 0.2, "m2": math.inf}), SMALL.sides[1]), 0.01)
FORKED = dataclasses.replace(SMALL, changes=(FORK,))


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    found = HistoryCache(toys_service.TIMELINE.kept.fresh)
    monkeypatch.setattr(toys_service.TIMELINE, "kept", found)
    return found


def ask(toy: Toy, **more) -> dict:
    answer = unpack(toys_service.TIMELINE.answer({"state": toy.to_json(), **more}))
    return answer | answer.pop("arrays")


def until(toy: Toy, want: int) -> list[dict]:
    """Return answers up to step `want`; each trains for a limited time only."""
    answers = [ask(toy, have=-1, want=want)]
    while answers[-1]["ready"] < want:
        answers.append(ask(toy, have=answers[-1]["ready"], want=want))
    return answers


@pytest.mark.parametrize("toy", [SMALL, FORKED])
def test_frames_and_curves_are_the_librarys(toy):
    answers = until(toy, 6)
    steps = np.concatenate([a["steps"] for a in answers])
    assert steps.tolist() == list(range(7))
    data, indices = toy.dataset, answers[0]["indices"]
    of_inputs = retrieval(data.inputs[indices], data.labels[indices], ks=(1,))
    assert answers[0]["baseline"] == {"map_at_r": of_inputs.map_at_r, "recall": of_inputs.recall_at[1]}
    for i in range(2):
        training = LiveTraining(toy.live(i), toy.dataset)
        training.frame(6)
        curve = np.concatenate([a[f"curve_{i}"] for a in answers])
        expected = np.stack([training.curves()[name] for name in toys_service.CURVES], 1)
        np.testing.assert_allclose(curve[:, :5], expected, rtol=1e-6)
        np.testing.assert_allclose(curve[:, 5], toy_runs.recent_mean(expected[:, 0]), rtol=1e-6)
        shown = np.concatenate([a[f"frames_{i}"] * a[f"scale_{i}"][:, None, None] for a in answers])
        for k, points in enumerate(shown):
            exact = training.frames[k].embeddings
            np.testing.assert_allclose(points, exact, atol=1.01 * np.abs(exact).max() / 65534 + 1e-7)
    first = answers[0]
    assert np.array_equal(first["inputs"], toy.dataset.inputs[first["indices"]])
    names = [toy.dataset.class_names[k] for k in toy.dataset.labels[first["indices"]]]
    assert [first["classes"][k] for k in first["labels"]] == names


def test_a_change_shares_the_steps_before_it_and_nothing_after(fresh):
    until(SMALL, 6)
    before, after = fresh.of(SMALL.live(0)), fresh.of(FORKED.live(0))
    assert after.recorded == 3
    assert all(a is b for a, b in zip(after.frames, before.frames, strict=False))
    until(FORKED, 6)
    assert not np.array_equal(after.frames[4].embeddings, before.frames[4].embeddings)
    assert len(fresh) == 4  # a change of the learning rate applies to both sides


KEYS = [*Toy().to_json(), "loss", "hyper", "m", "at", "moves"]
plain = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(plain, plain)
@settings(max_examples=60, deadline=None)
def test_any_message_gives_a_state_that_can_be_trained(data, more):
    toy = Toy.of(data if not isinstance(data, dict) else data | {"sides": more})
    for i in range(len(toy.sides)):
        toy.live(i)
    json.dumps(toy.to_json(), allow_nan=False)


def test_the_whole_of_a_full_state_fits_into_one_message():
    wide = LossSide("distance_sensitive", dict.fromkeys(Toy().sides[1].hyper, -123.456789))
    changes = [SidesChange(4000 - k, (wide, wide), 0.0123456789) for k in range(toys_state.MOST_CHANGES)]
    assert len(json.dumps({"state": Toy(changes=tuple(changes)).to_json(), "frames": [4000] * 60})) < MOST_BYTES


def test_each_side_is_a_run_of_its_own():
    found = toys_service.rested(FORKED, 5)
    runs = [RunSpec.from_toml(text) for text in found["toml"]]
    assert runs[0].loss.name == "facenet"
    assert runs[0].optimiser.learning_rate == 0.01
    assert runs[0].schedule.steps == 5
    assert runs[1].loss.parameters == {"m_pos": 0.1, "m_neg": 0.5}
    for run, link, command in zip(runs, found["links"], found["command"], strict=True):
        assert spec_link.linked(dict(parse_qsl(link))) == run
        assert command.startswith("python -m dmlcore train ")
    for link in ({"base": "toy", "set": "loss.name=nothing;x"}, {"base": "../etc"}):
        with pytest.raises(SpecError):
            spec_link.linked(link)


def test_the_table_has_ours_and_the_printed_rows():
    with TestClient(Starlette(routes=toys_scores.ROUTES)) as client:
        found = client.get("/api/toys/table?step=2").json()
        other = client.get("/api/toys/table?data=moons&step=1&sides=1").json()
    training = LiveTraining(Toy().live(0), Toy().dataset)
    assert found["ours"][2]["scores"] == toy_runs.in_columns(toy_runs.train_scores(training, 2))
    assert found["ours"][1]["scores"] == toy_runs.in_columns(toy_runs.train_scores(training, 0))
    assert [row["ours"] for row in found["published"] if row["ours"]] == [[0], [1]]
    assert found["samples"] == 2400
    assert other["published"] == []
    assert [row["label"] for row in other["ours"]][2:] == ["A"]


def test_the_recording_is_what_the_engine_gives():
    stored = unpack(recording.PATH.read_bytes())
    stored |= stored.pop("arrays")
    assert stored["ready"] == recording.STEPS
    assert stored["steps"][-1] == recording.STEPS
    steps = 8
    found = unpack(recording.recording(steps))
    found |= found.pop("arrays")
    assert {k: stored[k] for k in ("classes", "axes", "note", "per_epoch")} == {
        k: found[k] for k in ("classes", "axes", "note", "per_epoch")
    }
    after_400 = [round(float(stored[f"curve_{i}"][400, 3]), 2) for i in range(2)]
    assert "MAP@R {:.2f} against {:.2f}".format(*after_400) in PRESETS[0].caption
    for name in ("labels", "indices", "inputs"):
        assert np.array_equal(stored[name], found[name])
    for i in range(2):
        # Other machines round differently, and training amplifies the difference to 1e-3 after a few steps. These
        # losses are invariant to translation, so that rounding alone shifts the cloud, by whole steps of RMSprop.
        shown, fresh_ = (a[f"frames_{i}"] * a[f"scale_{i}"][:, None, None] for a in (stored, found))
        shown, fresh_ = (points - points.mean(1, keepdims=True) for points in (shown, fresh_))
        np.testing.assert_allclose(shown[: len(fresh_)], fresh_, atol=1e-3)
        np.testing.assert_allclose(stored[f"curve_{i}"][: steps + 1], found[f"curve_{i}"], rtol=1e-3, atol=2e-3)


@pytest.fixture
def glyphs(monkeypatch, tmp_path):
    """Restrict the glyphs to 400 samples and train their network for two steps."""
    monkeypatch.setenv("DML_CACHE", str(tmp_path))
    monkeypatch.setattr(toy_runs, "SPOT_STEPS", 2)
    whole = toy_runs.dataset("glyphs", 0)
    train, test = whole.splits["train"][:320], whole.splits["test"][:80]
    few = dataclasses.replace(whole, splits={"train": train, "validation": train[:0], "test": test})
    monkeypatch.setattr(toy_runs, "dataset", lambda name, seed: few)
    monkeypatch.setattr(toys_service, "PREPARING", toys_service._Preparing())
    caches = (toy_runs.prepare_data, toys_service._sheet, toys_scores._scored, toys_scores._input_scored)
    for each in caches:
        each.cache_clear()
    yield few
    for each in caches:
        each.cache_clear()


def test_images_are_trained_on_kept_features_and_queries_find_their_neighbours(glyphs):
    preset = next(toy for toy in (preset.state(Toy) for preset in PRESETS) if toy.data == "glyphs")
    sides = (preset.sides[0], dataclasses.replace(preset.sides[0], pooling="gsp"))
    toy = dataclasses.replace(preset, sides=sides)
    assert Toy.from_query(toy.to_query()) == toy == Toy.of(json.loads(json.dumps(toy.to_json())))
    told = ask(toy, have=-1, want=12)
    while "preparing" in told:
        assert told["preparing"].startswith("Preparing the images")
        told = ask(toy, have=-1, want=12)
    answers = [told]
    while answers[-1]["ready"] < 12:
        answers.append(ask(toy, have=answers[-1]["ready"], want=12))
    first = answers[0]
    assert first["sheet"][:2].tolist() == [0xFF, 0xD8]  # a JPEG
    assert first["dim"] == 2
    asked = first["queries"]
    for i in range(2):
        training = LiveTraining(toy.live(i), toy_runs.prepare_data("glyphs", 0))
        training.frame(12)
        assert not any(p.requires_grad for p in training.weights().backbone.parameters())
        shown = np.concatenate([a[f"neighbours_{i}"] for a in answers if f"neighbours_{i}" in a])
        for k in (0, 12):
            e = training.frames[k].embeddings.astype(float)
            d = np.linalg.norm(e[asked, None] - e, axis=2)
            d[np.arange(len(asked)), asked] = np.inf
            assert np.array_equal(shown[k], np.argsort(d, axis=1, kind="stable")[:, :5])
        weights = np.concatenate([a[f"weights_{i}"] for a in answers if f"weights_{i}" in a])
        assert weights.shape == (13, 3, 9)
        assert bool((weights == 64).all()) == (i == 0)  # average pooling weights all positions equally
        points = np.concatenate([a[f"frames_{i}"] * a[f"scale_{i}"][:, None, None] for a in answers])
        np.testing.assert_allclose(points[12], training.frames[12].plane, atol=1e-3)
    forked = dataclasses.replace(
        toy, changes=(SidesChange(4, (sides[0], dataclasses.replace(sides[1], epsilon=50.0)), toy.rate),)
    )
    assert Toy.from_query(forked.to_query()) == forked
    ask(forked, have=-1, want=6)
    before, after = (toys_service.TIMELINE.kept.of(each.live(1)) for each in (toy, forked))
    assert after.frames[4] is before.frames[4]
    assert after.spec.run_at(5).pooling.parameters["epsilon"] == 50
    table = toys_scores.table(toy, 2)
    assert table["ours"][0]["label"] == "frozen network, averaged"


def test_a_set_of_images_that_cannot_be_prepared_says_why(glyphs, monkeypatch):
    def broken(name, seed):
        raise OSError("no such device")

    monkeypatch.setattr(toy_runs, "prepare_data", broken)
    toy = Toy.from_query({"data": "glyphs"})
    found = [ask(toy, have=-1, want=1)["preparing"] for _ in range(2)]
    assert found == ["These images cannot be used: no such device"] * 2
