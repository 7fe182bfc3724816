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
    return [(issue.severity, issue.sentence) for issue in comparability.lint(specs)]


def has(issues, severity, *words):
    return any(level == severity and all(word in sentence for word in words) for level, sentence in issues)


@pytest.mark.parametrize(
    ("override", "severity", "words"),
    [
        ("data.name=cars", "incomparable", "(cub and cars)"),
        ("data.split=samples", "incomparable", "(unseen classes and known classes)"),
        ("data.root=/mini", "caution", "(the default location and /mini)"),
        ("schedule.monitor_part=test", "incomparable", "MAP@R of the test split"),
        ("model.name=resnet50", "incomparable", "(resnet18 and resnet50)"),
        ("model.start=imagenet", "incomparable", "(at random and imagenet)"),
        ("model.embedding_dim=512", "incomparable", "(64 and 512)"),
        ("data.image_size=128", "incomparable", "128 pixels"),
        ("protocol=karaman-2021", "caution", "(none and karaman-2021)"),
        ("data.folds=4", "caution", "fold of 4 contiguous folds"),
        ("data.crop=resized", "caution", "(shifted and resized crops of 16 to 100 %)"),
        ("pooling.name=gsp", "caution", "(gap and gsp)"),
        ("model.normalize=false", "caution", "(True and False)"),
        ("schedule.steps=4000", "caution", "(400 steps of 64 and 4,000 steps of 64)"),
        ("batch.samples=4", "caution", "(8 x 8 (balanced) and 8 x 4 (balanced))"),
        ("loss.tcm=0.5", "note", "(none and 0.5 with margins 0.9 and 0.5)"),
        ("optimiser.learning_rate=1e-5", "note", "adam at 1e-05"),
        ("compute.precision=bfloat16", "note", "bfloat16"),
    ],
)
def test_each_difference_is_named_with_both_values(override, severity, words):
    assert has(found(IMAGES, IMAGES.with_overrides([override])), severity, words)


def test_what_is_compared_is_no_difference():
    other = IMAGES.with_overrides(["loss.name=facenet", "miner.name=hard"])
    ((severity, sentence),) = found(IMAGES, other)
    assert (severity, "Only one seed" in sentence) == ("caution", True)
    assert comparability.lint([IMAGES, IMAGES]) == []
    assert comparability.lint([]) == []


def test_defaults_are_compared_by_what_they_mean():
    explicit = RunSpec().with_overrides(["data.name=toy", "data.split=classes", "data.validation=classes"])
    ((_, sentence),) = found(explicit, RunSpec().with_overrides(["data.name=toy"]))
    assert "seed" in sentence


def test_repeats():
    def runs(*seeds, loss="ranking"):
        return [IMAGES.with_overrides([f"seed={seed}", f"loss.name={loss}"]) for seed in seeds]

    assert has(found(*runs(1), *runs(1, loss="facenet")), "caution", "Only one seed per setting")
    assert has(found(*runs(1), *runs(1, 2, 3, loss="facenet")), "caution", "(1 and 3)")
    assert has(found(*runs(1, 2), *runs(3, 4, loss="facenet")), "note", "Different seeds")
    assert found(*runs(1, 2), *runs(1, 2, loss="facenet")) == []


def test_single_specs():
    chosen = IMAGES.with_overrides(["schedule.monitor_part=test"])
    assert has(found(chosen), "caution", "too high")
    assert has(found(IMAGES.with_overrides(["data.validation=none"])), "note", "last step")
    assert has(found(IMAGES.with_overrides(["data.split=samples"])), "note", "nothing about unseen")
    fast = IMAGES.with_overrides(["optimiser.learning_rate=1e-4", "loss.learning_rate=1e-2"])
    assert has(found(fast), "caution", "100 times faster")
    assert found(IMAGES) == []


def test_a_protocol_allows_what_it_says_and_the_rest_is_told(monkeypatch):
    monkeypatch.setattr("dmlcore.data.files.locate.find", lambda *_: None)
    spec = protocols.ProtocolRequest(protocol="gurbuz-2022-fair", data="cub", loss="proxy_anchor").entries()[0].spec
    ((severity, told),) = found(spec)
    assert severity == "note"
    assert says(told, "100 times faster", "gurbuz-2022-fair")
    left = found(spec.with_overrides(["schedule.patience=3", "loss.learning_rate=0.1"]))
    assert has(left, "caution", "gurbuz-2022-fair", "schedule.patience", "3", "15")
    assert has(left, "caution", "Loss parameters learn")
    (only,) = comparability.lint_protocol_runs([spec, spec.with_overrides(["schedule.patience=3"])])
    assert "Loss parameters learn" in only.sentence


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
    assert has(found(RunSpec().with_overrides(frozen)), "caution", "starts at random")
    assert not has(found(RunSpec().with_overrides([*frozen, "model.start=imagenet"])), "caution", "starts at random")
