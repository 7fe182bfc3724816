"""Stored feature maps of a frozen backbone: the same training run as without them, computed once, stored atomically."""

import dataclasses
import json
import os

import numpy as np
import pytest
import torch

from dmlcore.data import DataError
from dmlcore.inspection.index import Index
from dmlcore.inspection.local import weight_maps
from dmlcore.models import networks
from dmlcore.monitoring.comparability import lint_spec
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.runs import RunStore
from dmlcore.training import batches, build, loop, stored_features
from dmlcore.training.errors import TrainingError
from dmlcore.training.forks import fork_spec
from dmlcore.training.forks.transfer import refused_keys
from dmlcore.training.loop import evaluate, train
from tests.training.resumed import trained

CPU = torch.device("cpu")
FROZEN = RunSpec(device="cpu").with_overrides(
    [
        *("data.name=digits_pictures", "model.name=conv4", "model.freeze=backbone", "model.embedding_dim=8"),
        *("batch.classes=2", "batch.samples=4", "schedule.steps=6", "schedule.validate_every=3"),
        *("schedule.checkpoint_every=3", "schedule.keep_every=3", "data.augment=false"),
    ]
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stored_features, "CHUNK", 16)
    return tmp_path / "cache" / "features"


@pytest.fixture(scope="module")
def digits():
    """Return seventy-five images of digits, 16 pixels per side, of all splits."""
    whole = build.load_data(FROZEN)
    splits = {name: rows[::24] for name, rows in whole.splits.items()}
    return dataclasses.replace(whole, inputs=np.ascontiguousarray(whole.inputs[:, :, ::2, ::2]), splits=splits)


def made(spec, dataset):
    return build.build(spec, dataset, CPU)


def stores(cache):
    return sorted(entry.name for entry in cache.iterdir() if entry.is_dir())


def fail(*_):
    raise AssertionError("the backbone was evaluated again")


def test_maps_are_those_of_the_backbone_and_are_computed_once(digits, cache, monkeypatch):
    state = made(FROZEN, digits)
    rows = digits.splits["test"]
    assert not cache.exists()
    found = batches.to_device(state.data, rows, CPU)
    with torch.inference_mode():
        direct = state.model.features(batches.to_device(digits, rows, CPU))
    assert found.dtype == torch.float16
    torch.testing.assert_close(found.float(), direct, rtol=1e-3, atol=1e-3)
    assert found.is_contiguous(memory_format=torch.channels_last)
    monkeypatch.setattr(networks.ImageNetwork, "features", fail)
    again = made(FROZEN, digits)
    assert torch.equal(batches.to_device(again.data, rows, CPU), found)
    assert len(stores(cache)) == 1


def test_a_training_is_that_of_the_head_alone(digits):
    state, plain = made(FROZEN, digits), made(FROZEN.with_overrides(["model.freeze=none"]), digits)
    plain.model.backbone.eval().requires_grad_(False)
    plain.model.train = lambda mode=True: plain.model  # frozen batch norm in its initial state
    for step in (1, 2, 3):
        assert float(loop.step(state, step)) == pytest.approx(float(loop.step(plain, step)), rel=2e-3)
    before = made(FROZEN, digits).model.state_dict()
    changed = {name for name, tensor in state.model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed
    assert all(name.startswith("head.") for name in changed)
    assert not any(layer.training for layer in state.model.train().batch_norms())


def test_views_are_those_of_the_augmentation_and_tests_see_none(digits, cache):
    spec = FROZEN.with_overrides(["data.augment=true", "data.views=2"])
    state = made(spec, digits)
    rows = np.sort(np.concatenate([digits.splits["train"], digits.splits["validation"]]))
    chunk = rows[: stored_features.CHUNK]
    found = np.stack([state.data.features.batch(chunk, seed) for seed in range(8)])
    assert len({maps.tobytes() for maps in found[:, 0]}) == 2
    with torch.inference_mode():
        views = [
            state.model.features(
                batches.load_augmented(
                    digits, chunk, spec.data, stored_features.seed_of(int(chunk[0]), "view", view), CPU
                )
            ).half()
            for view in (0, 1)
        ]
    each = np.stack([view.numpy() for view in views])
    assert all((found[k, i] == each[:, i]).all((1, 2, 3)).any() for k in range(8) for i in range(len(chunk)))
    assert np.array_equal(state.data.features.batch(chunk, 3), found[3])
    plain = made(FROZEN, digits).data.features
    assert np.array_equal(state.data.features[chunk], plain[chunk])
    assert len(stores(cache)) == 2


def test_other_weights_images_or_cuts_have_maps_of_their_own(digits, cache):
    first = made(FROZEN, digits)
    maps = first.data.features[digits.splits["test"]]
    other = made(FROZEN.with_overrides(["seed=1"]), digits).data.features[digits.splits["test"]]
    assert not np.array_equal(maps, other)
    assert len(stores(cache)) == 2
    with torch.no_grad():
        next(first.model.backbone.parameters()).mul_(2)  # restored after construction, like a checkpoint
    assert not np.array_equal(first.data.features[digits.splits["test"]], maps)
    assert len(stores(cache)) == 3
    inverted = dataclasses.replace(digits, inputs=255 - np.asarray(digits.inputs[:]))
    assert not np.array_equal(made(FROZEN, inverted).data.features[digits.splits["test"]], maps)
    assert len(stores(cache)) == 3  # files of the same weights on other images are deleted


def test_heads_on_several_depths_have_maps_of_their_own_and_embed_images_alike(digits, cache):
    plain, deep = made(FROZEN, digits), made(FROZEN.with_overrides(["model.gather=attention"]), digits)
    rows = digits.splits["test"]
    last = batches.to_device(plain.data, rows, CPU)
    stored = batches.to_device(deep.data, rows, CPU)
    assert len(stores(cache)) == 2
    channels = last.shape[1]
    assert stored.shape == (len(rows), 3 * channels, *last.shape[2:])
    assert torch.equal(stored[:, :channels], last)
    before = {name: tensor.clone() for name, tensor in deep.model.state_dict().items()}
    assert float(loop.step(deep, 1)) > 0
    changed = {name for name, tensor in deep.model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert {"head.gathered.keys.0.weight", "head.gathered.queries.1.weight", "head.linear.weight"} <= changed
    assert all(name.startswith("head.") for name in changed)
    with torch.inference_mode():
        of_images = deep.model.eval()(batches.to_device(digits, rows, CPU))
        torch.testing.assert_close(deep.model(stored), of_images, rtol=1e-3, atol=1e-3)


def test_a_killed_computation_goes_on_where_it_stopped(digits, cache, monkeypatch):
    features = made(FROZEN, digits).data.features
    whole = features[digits.splits["test"]]
    (name,) = stores(cache)
    staging = cache / f"{name}.staging"
    (cache / name).rename(staging)
    (staging / "shape.json").unlink()
    size = os.path.getsize(staging / "maps")
    rows = len(np.concatenate(list(digits.splits.values())))
    os.truncate(staging / "maps", size // rows * stored_features.CHUNK + 100)
    asked = []
    of = stored_features.StoredFeatures._of
    monkeypatch.setattr(
        stored_features.StoredFeatures, "_of", lambda self, rows, view: asked.append(len(rows)) or of(self, rows, view)
    )
    again = made(FROZEN, digits).data.features[digits.splits["test"]]
    assert sum(asked) == rows - stored_features.CHUNK + 1  # one pass determines the shape
    assert np.array_equal(again, whole)
    assert stores(cache) == [name]


@pytest.mark.parametrize("shape", ["[1, 2]", "nonsense", '{"a": 1}', "[7, 2, 2, 64]"])
def test_damaged_maps_are_refused_and_named(digits, cache, shape):
    made(FROZEN, digits).data.features.open()
    (name,) = stores(cache)
    (cache / name / "shape.json").write_text(shape)
    with pytest.raises(DataError, match=f"cached feature maps in .*{name} are damaged; remove this folder"):
        made(FROZEN, digits).data.features.open()


def test_what_is_kept_is_bounded_and_the_longest_unused_goes_first(digits, cache, monkeypatch):
    for seed in (0, 1):
        made(FROZEN.with_overrides([f"seed={seed}"]), digits).data.features.open()
        (newest,) = {cache / name for name in stores(cache) if (cache / name).stat().st_mtime > 1}
        os.utime(newest, (seed, seed))
    oldest = min(stores(cache), key=lambda name: (cache / name).stat().st_mtime)
    size = sum(file.stat().st_size for file in (cache / oldest).iterdir())
    monkeypatch.setenv("DML_FEATURES_GB", str(2.5 * size / 1e9))
    made(FROZEN.with_overrides(["seed=2"]), digits).data.features.open()
    assert oldest not in stores(cache)
    assert len(stores(cache)) == 2
    monkeypatch.setenv("DML_FEATURES_GB", "0.00001")
    with pytest.raises(DataError, match=r"more than the 0\.0 GB that are kept; choose smaller images"):
        made(FROZEN.with_overrides(["seed=3"]), digits).data.features.open()
    monkeypatch.setenv("DML_FEATURES_GB", "much")
    with pytest.raises(DataError, match="DML_FEATURES_GB must be a number"):
        made(FROZEN.with_overrides(["seed=3"]), digits).data.features.open()


def test_maps_beyond_float16_are_refused(digits):
    state = made(FROZEN, digits)
    with torch.no_grad():
        for layer in state.model.batch_norms():
            layer.weight.mul_(100)
    with pytest.raises(TrainingError, match=r"model.freeze: feature maps of this backbone reach .* limited to 65,504"):
        state.data.features.open()


def test_a_frozen_run_resumes_forks_and_is_inspected_like_any_other(digits, tmp_path, monkeypatch):
    store = RunStore(tmp_path / "runs")
    whole, cut = trained(store, FROZEN, dataset=digits), store.create(FROZEN)
    with cut.lock():
        steps = iter([False, False, False, True])
        assert train(cut, dataset=digits, stop=lambda: next(steps)).state == "cancelled"
    monkeypatch.setattr(stored_features.StoredFeatures, "_make", fail)  # all later images are read from the store
    with cut.lock():
        cut.update(state="queued")
        assert train(cut, dataset=digits).state == "done"
    assert cut.metrics()[0] == whole.metrics()[0]
    with whole.lock():
        assert evaluate(whole, dataset=digits) == pytest.approx(whole.scores()["trained"]["map_at_r"])
    monkeypatch.setattr(build, "load_data", lambda spec: digits)
    weights = weight_maps.read(weight_maps.write(whole))
    assert weights.weights.shape[1:] == (2, 2)
    index = Index.of_run(whole)
    queries = np.asarray(digits.inputs[index.indices[:5]])
    # images of the user pass through the backbone
    assert np.abs(index.embed(queries) - index.embeddings[:5]).max() < 5e-3
    fork = fork_spec.create(whole, 3, ["loss.name=contrastive"])
    assert "model.freeze" in refused_keys(FROZEN, fork.with_overrides(["model.freeze=none"]))
    trained(store, fork, dataset=digits)


def test_what_freezes_nothing_is_refused_and_a_random_start_is_said(digits, tmp_path):
    with pytest.raises(SpecError, match=r"model\.freeze: mlp has no backbone"):
        RunSpec().with_overrides(["model.freeze=backbone"])
    for more in (["model.freeze=none"], ["model.freeze=backbone"]):
        with pytest.raises(SpecError, match=r"data\.views: needs model\.freeze = backbone"):
            FROZEN.with_overrides([*more, "data.views=2"])
    with pytest.raises(SpecError, match=r"data\.fresh: the cached features"):
        FROZEN.with_overrides(["data.name=cifar100", "data.fresh=true"])
    said = [issue.sentence for issue in lint_spec(FROZEN)]
    assert any("the trained layers see random features" in sentence for sentence in said)
    assert json.loads(FROZEN.to_json())["model"]["freeze"] == "backbone"
