"""Study files: fields, expansion into runs, and rejected input."""

import sys
from subprocess import run

import pytest
import torch

from dmlcore import losses, pooling
from dmlcore.experiments import studies
from dmlcore.experiments.studies.spec import Study
from dmlcore.spec import SpecError
from dmlcore.storage.listing import without_name
from tests.experiments.studies.tiny import HEAD
from tests.members import in_one_case

# Poolings that existed when the studies were run; later ones are not in their results.
POOLINGS = {
    *("cbam", "crow", "delf", "gap", "gap_gmp", "gem", "gemax", "gmp", "gsop", "gsp", "gsp_gmp", "netvlad", "otp"),
    *("solar", "tsmk", "weldon"),
}

TOML = f"""{HEAD}
seeds = [3, 5]

[base.schedule]
steps = 3

[pretraining]
overrides = ["loss.name=facenet"]

[[variants]]
name = "plain"

[[variants]]
name = "started"
start = "pretraining"
overrides = ["loss.m=0.3", "schedule.steps=4"]
"""

# beginnings of the names of studies whose variants have different losses
COMPARE_LOSSES = (
    "angular-",
    "covering-",
    "ensemble-dimension-",
    "forces-",
    "gdfl-",
    "losses-",
    "methods-",
    "neighbourhoods-",
    "projections-",
    "selection-",
    "sizes-",
    "toy-table",
)


def test_expand_gives_each_seed_its_pretraining_first():
    study = Study.from_toml(TOML)
    entries = studies.expand(study)
    assert [(e.variant, e.seed) for e in entries] == [
        (name, seed) for seed in (3, 5) for name in ("pretraining", "plain", "started")
    ]
    pretraining, plain, started = entries[:3]
    assert all(e.spec.seed == e.seed for e in entries)
    assert (pretraining.spec.loss.name, plain.spec.loss.name) == ("facenet", "ranking")
    assert started.spec.loss.parameters == {"m": 0.3}
    assert started.starts == pretraining.spec
    assert started.after("run-1").model.start == "run-1"
    assert plain.after("run-1") == plain.spec
    assert plain.spec.name == "Tiny · plain"


def test_seeds_variants_and_overrides_narrow_a_study():
    study = Study.from_toml(TOML)
    (entry,) = studies.expand(study, seeds=[9], only="plain", overrides=["schedule.steps=7"])
    assert (entry.variant, entry.seed, entry.spec.schedule.steps) == ("plain", 9, 7)
    assert {e.spec.schedule.steps for e in studies.expand(study, overrides=["schedule.steps=7"])} == {7}
    with pytest.raises(SpecError, match="no variant 'other'; the study has: plain, started"):
        studies.expand(study, only=["other"])


def test_a_digest_knows_the_pretraining_but_no_names_and_no_run_ids():
    study = Study.from_toml(TOML)
    started = studies.expand(study)[2]
    renamed = studies.expand(Study.from_toml(TOML.replace('title = "Tiny"', 'title = "Other"')))[2]
    changed = studies.expand(Study.from_toml(TOML.replace("=facenet", "=contrastive")))[2]
    assert started.digest() == renamed.digest() != changed.digest()
    assert without_name(started.spec) == without_name(renamed.spec)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("steps = 3", "step = 3", "base.schedule.step: unknown key; did you mean steps?"),
        ("loss.m=0.3", "loss", "variants.started: loss: expected key=value"),
        ("schedule.steps=4", "schedule.steps=0", "variants.started: schedule.steps: must be at least 1, got 0"),
        ("=facenet", "=", "pretraining: loss.name"),
        ('name = "started"', 'name = "plain"', "variants: the name 'plain' is taken"),
        ('name = "started"', 'name = "<b>"', "variants.1.name: "),
        ('overrides = ["loss.m', 'override = ["loss.m', "variants.1.override: unknown key; did you mean overrides?"),
        ('question = "Does it run?"', "", "question: is missing"),
        ("minutes = 1", "minutes = 0", "minutes: "),
        ("seeds = [3, 5]", "seeds = [-1]", "seeds.0: "),
        ('[pretraining]\noverrides = ["loss.name=facenet"]', "", "variants.started.start: there is no [pretraining]"),
        ('name = "plain"', 'name = "plain"\nagainst = ["none"]', "variants.plain.against: there is no variant 'none'"),
        ('name = "plain"', 'name = "plain"\nagainst = ["plain"]', "variants.plain.against: a variant cannot be its"),
        ("title", "[", "not TOML"),
    ],
)
def test_a_mistake_is_named(old, new, message):
    assert old in TOML
    with pytest.raises(SpecError) as refused:
        Study.from_toml(TOML.replace(old, new))
    assert str(refused.value).startswith(message)


def test_an_unknown_study_names_the_known_ones(tmp_path):
    for name in ("../tokens", "/etc/passwd", "nothing", str(tmp_path / "no.toml"), ""):
        with pytest.raises(SpecError, match=f"or one of {studies.names()[0]}"):
            studies.read(name)
    (tmp_path / "bad.toml").write_text("title = 1")
    with pytest.raises(SpecError, match=r"bad\.toml:\n"):
        studies.read(str(tmp_path / "bad.toml"))


@in_one_case(name=studies.names())
def test_every_study_of_the_lab_compares_like_with_like(name):
    """Equal budgets, losses that exist (a single one, unless losses are compared), and poolings that exist."""
    study = studies.read(name)
    fitted = {e.variant for e in studies.expand(study) if e.spec.model.embedding_start != "random"}  # untrained
    entries = [e for e in studies.expand(study) if e.variant not in (studies.PRETRAINING, *fitted)]
    compares_batches = name.startswith("neighbourhood")
    compares_sizes = name.startswith("projections-batch-")
    compares_losses = name.endswith("-sweep") or name.startswith(COMPARE_LOSSES)
    own = [{variant.name, *variant.against} for variant in study.variants if variant.against and study.of_methods]
    assert all(e.spec.schedule.steps == entries[0].spec.schedule.steps for e in entries)
    # candidates may differ in the rate: each loss has the same number of them
    rates = {line for variant in study.variants for each in variant.choose for line in each if "optimiser." in line}
    assert all(line.startswith("optimiser.learning_rate=") for line in rates)
    fields = ["schedule", "optimiser", *([] if compares_sizes else ["batch"]), *([] if compares_losses else ["loss"])]
    for field in fields:
        for alike in own or [{e.variant for e in entries}]:  # a method and its reference
            settings = [getattr(e.spec, field).model_dump() for e in entries if e.variant in alike]
            if field == "batch" and (own or compares_batches):  # the sampler may be the method
                settings = [{key: each[key] for key in ("classes", "samples")} for each in settings]
            if field == "optimiser" and rates:
                settings = [{key: each[key] for key in each if key != "learning_rate"} for each in settings]
            assert all(each == settings[0] for each in settings), field
    for entry in entries:
        spec = entry.spec
        pooling.create(spec.pooling.name, 16, **spec.pooling.parameters)
        losses.for_training(
            spec.loss.name, classes=3, embedding_dim=8, reduction=spec.loss.reduction, **spec.loss.parameters
        )
        if spec.pooling.zero_shot:
            assert hasattr(pooling.create(spec.pooling.name, 16, **spec.pooling.parameters), "shares")


def test_the_study_of_all_poolings_has_them():
    entries = studies.expand(studies.read("omniglot-collage-poolings"), seeds=[0])
    assert {e.spec.pooling.name for e in entries if e.variant != studies.PRETRAINING} == POOLINGS


def test_average_pooling_with_the_zero_shot_loss_is_generalized_sum_pooling_of_all_features():
    """Gürbüz 2022, Table 5.3: with mu = 1 the layer averages, and the shares of its prototypes have gradients."""
    *_, entry = studies.expand(studies.read("collage"), seeds=[0], only="GAP + zero-shot")
    assert entry.spec.pooling.zero_shot == 0.5
    layer = pooling.create(entry.spec.pooling.name, 16, **{**entry.spec.pooling.parameters, "memory": 0})
    features = torch.rand(4, 16, 3, 3, requires_grad=True)
    torch.testing.assert_close(layer(features), features.mean((2, 3)))
    pooling.ZeroShotPrediction(2, 8)(layer.shares, torch.tensor([0, 0, 1, 1])).backward()
    assert layer.prototypes.grad.abs().max() > 0
    assert features.grad.abs().max() > 0


def test_reading_a_study_of_one_loss_loads_no_torch():
    code = (
        "import sys; from dmlcore.experiments import studies; studies.read('collage'); sys.exit('torch' in sys.modules)"
    )
    assert run([sys.executable, "-c", code], check=False).returncode == 0


def test_seeds_that_rotate_validate_on_one_fold_each_and_are_the_protocols_runs():
    study = studies.read("cub-squeezenet")
    entries = studies.expand(study, seeds=range(6), only="GAP")
    assert [(e.seed, e.spec.seed, e.spec.data.fold) for e in entries] == [
        *((0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 4), (4, 1, 1), (5, 1, 2))
    ]
    assert {e.spec.pooling.name for e in studies.expand(study, seeds=[0])} == POOLINGS
    with pytest.raises(SpecError, match=r"rotate: needs base\.data\.folds"):
        Study.parse(study.model_dump(exclude={"base"}) | {"base": {"data": {"name": "cub"}}})


def test_variants_that_differ_in_the_swept_setting_alone_form_a_line():
    lines = studies.read("gsp-search-birds").sweep_lines()
    assert lines["C2, m … eps 5"] == {"C2, m 16, eps 5": 16, "C2, m 64, eps 5": 64, "C2, m 128, eps 5": 128}
    assert len(lines) == 4, "average pooling has no prototypes"
    assert list(studies.read("projections-weight-birds").sweep_lines()["lambda …"].values()) == sorted(
        [0, 1e-5, 2e-4, 1e-2, 1, 100]
    )
    assert studies.read("prototypes").sweep_lines() == {}


def test_a_sweep_of_a_setting_that_no_variants_differ_in_is_refused():
    with pytest.raises(SpecError, match=r"sweep.key: no two variants differ in schedule.steps alone"):
        Study.from_toml(
            TOML.replace("[base.schedule]", '[sweep]\nkey = "schedule.steps"\ntitle = "steps"\n\n[base.schedule]')
        )
