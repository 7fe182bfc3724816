"""Attribution: the points of the design, effects and shares of made scores, and the runs from start to results file."""

import pytest

from dmlcore.experiments import attribution, studies
from dmlcore.experiments.attribution import ScoredRun
from dmlcore.experiments.attribution.design import design_points, points
from dmlcore.experiments.attribution.effects import REST, SEEDS
from dmlcore.experiments.studies import StudyRequest
from dmlcore.experiments.studies.spec import Study
from dmlcore.spec import SpecError
from dmlcore.storage.runs import RunStore
from tests.experiments.studies.tiny import HEAD, SMALL
from tests.members import in_one_case
from tests.training.resumed import trained

TOML = f"""{HEAD}
seeds = [0, 1]
{SMALL}
[base.schedule]
steps = 2
validate_every = 2
checkpoint_every = 2

[[contrasts]]
where = "Ranking ahead of FaceNet"
of = "Ranking"
against = "FaceNet"

[attribution]
contrast = "Ranking ahead of FaceNet"
minutes = 1

[[attribution.open]]
name = "Batch"
values = [["batch.classes=3", "batch.samples=3"], "batch.classes=5"]

[[attribution.open]]
name = "Weight decay"
values = ["optimiser.weight_decay=0.01"]

[[variants]]
name = "Ranking"
overrides = ["loss.name=ranking"]

[[variants]]
name = "FaceNet"
overrides = ["loss.name=facenet"]
"""
BATCH, DECAY = "Batch", "Weight decay"


def study() -> Study:
    return Study.from_toml(TOML)


def made(score) -> list[ScoredRun]:
    """Return the runs of TOML, in which Ranking scores `score(point, seed)` and FaceNet 0.1."""
    return [
        ScoredRun(point=point, variant=variant, seed=seed, digest="", seconds=1.0,
                  score=score(point, seed) if variant == "Ranking" else 0.1)
        for point in points(study().attribution)
        for variant in ("Ranking", "FaceNet")
        for seed in (0, 1, 2)
    ]  # fmt: skip


@in_one_case(count=range(1, 8))
def test_settings_are_orthogonal_and_the_first_point_is_that_of_the_study(count):
    design = design_points(count)
    assert design[0] == (0,) * count
    assert len(design) == (4 if count <= 2 else 8)
    columns = list(zip(*design, strict=True))
    assert all(sum(column) == len(design) // 2 for column in columns)
    for place, first in enumerate(columns):
        for second in columns[:place]:
            assert sum(a == b for a, b in zip(first, second, strict=True)) == len(design) // 2


def test_every_alternative_is_tried_alone_and_runs_are_those_of_the_overrides():
    assert points(study().attribution) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]
    runs = attribution.expand(study(), {})
    assert len(runs) == 5 * 2 * 2
    both = next(entry.spec for point, entry in runs if point == (1, 1))
    assert (both.batch.classes, both.batch.samples, both.optimiser.weight_decay) == (3, 3, 0.01)
    own = {entry.digest() for point, entry in runs if point == (0, 0)}
    assert own == {entry.digest() for entry in studies.expand(study())}, "runs of the study are reused"
    assert attribution.own_values(study())[0] == "batch.classes=4, batch.samples=2"


def test_an_effect_is_found_with_its_interval_and_its_share_and_noise_is_not():
    noise = {0: 0.001, 1: 0.0, 2: -0.001}
    runs = made(lambda point, seed: 0.32 - 0.2 * (point[0] > 0) + noise[seed] * (1 + point[1]))
    first, second, decay = attribution.effects(study(), runs)
    assert (first.setting, first.value, first.significant) == (BATCH, "batch.classes=3, batch.samples=3", True)
    assert first.change.mean == pytest.approx(-0.2)
    assert second.change.mean == pytest.approx(-0.2)
    assert decay.change.mean == pytest.approx(0.0)
    assert not decay.significant
    low, high = decay.change.interval
    assert low < 0 < high
    shares = attribution.shares(study(), runs)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[BATCH] > 0.99
    assert shares[DECAY] < 0.001
    text = attribution.summary(study(), runs)
    assert text.startswith("Of 3 alternatives, 2 change the contrast significantly: Batch")
    assert "MAP@R: +22.0" in text, "the contrast of the study"
    assert "+2.0 to +22.0 points, with the opposite sign at none" in text


def test_an_interaction_and_the_seeds_have_shares_of_their_own():
    crossed = attribution.shares(study(), made(lambda point, seed: 0.3 + 0.1 * (-1) ** sum(point)))
    assert crossed[REST] == pytest.approx(1)
    of_seeds = attribution.shares(study(), made(lambda point, seed: 0.3 + 0.1 * seed))
    assert of_seeds[SEEDS] == pytest.approx(1)
    assert of_seeds[REST] == pytest.approx(0)


def test_a_reversed_sign_is_reported():
    text = attribution.summary(study(), made(lambda point, seed: 0.0 if point[0] == 1 else 0.2 + 0.001 * seed))
    assert "with the opposite sign at 2." in text


def test_without_all_points_there_are_effects_and_no_shares():
    runs = [run for run in made(lambda point, seed: 0.2) if run.point != (1, 1)]
    assert len(attribution.effects(study(), runs)) == 3
    assert attribution.shares(study(), runs) == {}
    assert attribution.effects(study(), [run for run in runs if run.point != (0, 0)]) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('contrast = "Ranking ahead', 'contrast = "Ranking behind', "attribution.contrast: there is no contrast"),
        ("optimiser.weight_decay=0.01", "optimiser.weight_dekay=1", "attribution.open.Weight decay: optimiser.weight"),
        (
            'overrides = ["loss.name=',
            'choose = ["optimiser.weight_decay=0", "optimiser.weight_decay=1"]\noverrides = ["loss.name=',
            "optimiser.weight_decay is chosen among the candidates of 'Ranking', so it is not open",
        ),
    ],
)
def test_a_mistake_in_the_open_settings_is_named(old, new, message):
    with pytest.raises(SpecError, match=message):
        Study.from_toml(TOML.replace(old, new))


def test_a_study_without_open_settings_or_without_a_choice_is_refused():
    with pytest.raises(SpecError, match=r"add \[attribution\]"):
        attribution.expand(studies.read("gsp-birds"), {})
    with pytest.raises(SpecError, match=r"no candidate is chosen yet.*--write"):
        attribution.expand(studies.read("forces-birds"), {})


def test_runs_are_trained_measured_and_written(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TOML)
    store, request = RunStore(tmp_path / "runs"), StudyRequest(study=str(path), seeds=(0,))
    for _, entry in attribution.expand(study(), {}, (0,)):
        trained(store, entry.spec)
    assert attribution.conduct(request, store).state == "done", "all runs are found, so none is trained again"
    runs = attribution.measured(request, store)
    assert len(runs) == 5 * 2
    assert attribution.write(request, store) == tmp_path / "tiny.attribution.jsonl"
    written = attribution.load(str(path))
    assert list(written.runs) == runs
    assert written.seconds == pytest.approx(sum(run.seconds for run in runs))
    (tmp_path / "tiny.attribution.jsonl").write_text("[]\n{}\n")
    with pytest.raises(SpecError, match="write it again with --write"):
        attribution.load(str(path))


@in_one_case(name=[name for name in studies.names() if studies.read(name).attribution])
def test_shipped_attributions_fit_their_studies(name):
    study = studies.read(name)
    results = attribution.load(name)
    if results is None:
        return
    planned = {entry.digest() for _, entry in attribution.expand(study, results.chosen)}
    assert {run.digest for run in results.runs} <= planned
    assert attribution.shares(study, results.runs)
