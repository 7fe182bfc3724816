"""Issues that the linter reports for pairs of specs, single specs, and runs."""

from __future__ import annotations

import pytest

from dmlcore.experiments import protocols
from dmlcore.monitoring import comparability
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import MetricsWriter, RunStore
from tests.wording import says

IMAGES = RunSpec().with_overrides(
    ["data.name=cub", "model.name=resnet18", "data.split=classes", "data.validation=classes", "seed=1"]
)


def found(*specs):
    return {(w.severity, w.keys[0]): w.sentence for w in comparability.lint(specs)}


@pytest.mark.parametrize(
    ("override", "severity", "key", "words"),
    [
        ("data.name=cars", "incomparable", "data.name", "(cub and cars)"),
        ("data.split=samples", "incomparable", "data.split", "(unseen classes and known classes)"),
        ("data.root=/mini", "caution", "data.root", "(the default location and /mini)"),
        ("schedule.monitor_part=test", "incomparable", "schedule.monitor_part", "MAP@R of the test split"),
        ("model.name=resnet50", "incomparable", "model.name", "(resnet18 and resnet50)"),
        ("model.start=imagenet", "incomparable", "model.start", "(at random and imagenet)"),
        ("model.embedding_dim=512", "incomparable", "model.embedding_dim", "(64 and 512)"),
        ("data.image_size=128", "incomparable", "data.image_size", "128 pixels"),
        ("protocol=karaman-2021", "caution", "protocol", "(none and karaman-2021)"),
        ("data.folds=4", "caution", "data.validation", "fold of 4 contiguous folds"),
        ("data.crop=resized", "caution", "data.crop", "(shifted and resized crops of 16 to 100 %)"),
        ("pooling.name=gsp", "caution", "pooling.name", "(gap and gsp)"),
        ("model.normalize=false", "caution", "model.normalize", "(True and False)"),
        ("schedule.steps=4000", "caution", "schedule.steps", "(400 steps of 64 and 4,000 steps of 64)"),
        ("batch.samples=4", "caution", "batch.classes", "(8 x 8 (balanced) and 8 x 4 (balanced))"),
        ("optimiser.learning_rate=1e-5", "note", "optimiser.learning_rate", "adam at 1e-05"),
        ("compute.precision=bfloat16", "note", "compute.precision", "bfloat16"),
    ],
)
def test_each_difference_is_named_with_both_values(override, severity, key, words):
    assert words in found(IMAGES, IMAGES.with_overrides([override]))[severity, key]


def test_what_is_compared_is_no_difference():
    other = IMAGES.with_overrides(["loss.name=facenet", "miner.name=hard"])
    assert set(found(IMAGES, other)) == {("caution", "seed")}
    assert comparability.lint([IMAGES, IMAGES]) == []
    assert comparability.lint([]) == []


def test_defaults_are_compared_by_what_they_mean():
    explicit = RunSpec().with_overrides(["data.name=toy", "data.split=classes", "data.validation=classes"])
    assert {w.keys[0] for w in comparability.lint([explicit, RunSpec().with_overrides(["data.name=toy"])])} == {"seed"}


def test_repeats():
    def runs(*seeds, loss="ranking"):
        return [IMAGES.with_overrides([f"seed={seed}", f"loss.name={loss}"]) for seed in seeds]

    assert "Only one seed per setting" in found(*runs(1), *runs(1, loss="facenet"))["caution", "seed"]
    assert "(1 and 3)" in found(*runs(1), *runs(1, 2, 3, loss="facenet"))["caution", "seed"]
    assert "Different seeds" in found(*runs(1, 2), *runs(3, 4, loss="facenet"))["note", "seed"]
    assert found(*runs(1, 2), *runs(1, 2, loss="facenet")) == {}


def test_single_specs():
    chosen = IMAGES.with_overrides(["schedule.monitor_part=test"])
    assert "too high" in found(chosen)["caution", "schedule.monitor_part"]
    assert "last step" in found(IMAGES.with_overrides(["data.validation=none"]))["note", "data.validation"]
    assert "nothing about unseen" in found(IMAGES.with_overrides(["data.split=samples"]))["note", "data.split"]
    fast = IMAGES.with_overrides(["optimiser.learning_rate=1e-4", "loss.learning_rate=1e-2"])
    assert says(found(fast)["caution", "loss.learning_rate"], "100 times faster")
    assert found(IMAGES) == {}


def test_a_protocol_allows_what_it_says_and_the_rest_is_told(monkeypatch):
    monkeypatch.setattr("dmlcore.data.files.locate.find", lambda *_: None)
    spec = protocols.ProtocolRequest(protocol="gurbuz-2022-fair", data="cub", loss="proxy_anchor").entries()[0].spec
    ((found_at, told),) = found(spec).items()
    assert found_at == ("note", "loss.learning_rate")
    assert says(told, "100 times faster", "gurbuz-2022-fair")
    left = found(spec.with_overrides(["schedule.patience=3", "loss.learning_rate=0.1"]))
    assert says(left["caution", "schedule.patience"], "gurbuz-2022-fair", "schedule.patience", "3", "15")
    assert "caution" in {severity for severity, key in left if key == "loss.learning_rate"}
    assert [w.keys for w in comparability.lint_protocol_runs([spec, spec.with_overrides(["schedule.patience=3"])])] == [
        ("loss.learning_rate",)
    ]


def test_runs_tell_on_how_many_queries_they_were_tested(tmp_path):
    store = RunStore(tmp_path)
    runs = [store.create(IMAGES), store.create(IMAGES)]
    for run, queries in zip(runs, (5924, 450), strict=True):
        with MetricsWriter(run, 0) as rows:
            tested = {"kind": "scores", "step": 1, "of": "trained", "map_at_r": 0.5, "recall_at": {}}
            rows.append(tested | {"queries": queries})
    (only,) = comparability.lint(runs)
    assert says(only.sentence, "test samples", "5,924", "450")
    assert comparability.as_text([only]) == f"incomparable: {only.sentence}"


def test_the_gravest_come_first_and_none_twice():
    chosen = IMAGES.with_overrides(["schedule.monitor_part=test", "schedule.steps=7"])
    severities = [w.severity for w in comparability.lint([IMAGES, chosen, chosen])]
    assert severities == sorted(severities, key=["incomparable", "caution", "note"].index)
    assert len(severities) == len(set(comparability.lint([IMAGES, chosen, chosen])))


def test_batch_norm_frozen_at_a_random_start_is_named():
    frozen = ["data.name=cub", "model.name=resnet18", "model.freeze_batch_norm=true"]
    (found,) = (f for f in comparability.lint_spec(RunSpec().with_overrides(frozen)) if "model.start" in f.keys)
    assert "starts at random" in found.sentence
    started = RunSpec().with_overrides([*frozen, "model.start=imagenet"])
    assert not [f for f in comparability.lint_spec(started) if "model.start" in f.keys]
