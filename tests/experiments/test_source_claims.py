"""The table of claims: verdicts follow from made results, and every claim names a question that its study asks."""

import pytest

from dmlcore.experiments import source_claims, studies
from dmlcore.experiments.source_claims import NOT, NOT_RUN, OPEN, REPRODUCED, SourceClaim
from dmlcore.experiments.studies import StudyResults
from dmlcore.spec import SpecError
from tests.experiments.test_trial_ledger import measured

STUDY, WHERE = "projections-omniglot", "MAP@R of CCP above that of one proxy"
AHEAD, BEHIND, EQUAL = (0.30, 0.31, 0.32), (0.10, 0.11, 0.12), (0.19, 0.24, 0.20)
PROXY = (0.20, 0.21, 0.22)


def claim(**changes) -> SourceClaim:
    given = {"source": "A 2020", "where": "Table 1", "claim": "CCP helps.", "studies": [STUDY], "contrast": WHERE}
    return SourceClaim.model_validate(given | changes)


def row_of(monkeypatch, ccp, **changes):
    """Return the row of a claim if CCP has these scores, by seed, and one proxy those of PROXY."""
    runs = [
        measured(entry, (ccp if entry.variant == "CCP" else PROXY)[entry.seed])
        for entry in studies.expand(studies.read(STUDY))
        if entry.variant in ("CCP", "One proxy") and ccp
    ]
    stored = StudyResults(study=STUDY, written="", torch="", machine="", data={}, runs=tuple(runs))
    monkeypatch.setattr(studies, "load", lambda name: stored if name == STUDY else None)
    monkeypatch.setattr(source_claims, "source_claims", lambda: (claim(**changes),))
    (row,) = source_claims.table()
    return row


@pytest.mark.parametrize(
    ("scores", "holds", "verdict"),
    [
        (AHEAD, "yes", REPRODUCED),
        (BEHIND, "yes", NOT),
        (EQUAL, "yes", OPEN),
        (AHEAD, "no", NOT),
        (BEHIND, "no", REPRODUCED),
        (EQUAL, "equal", OPEN),
        (AHEAD, "equal", NOT),
        (BEHIND, "equal", NOT),
        ((), "yes", NOT_RUN),
    ],
)
def test_the_verdict_follows_from_the_significance_and_the_claimed_direction(monkeypatch, scores, holds, verdict):
    row = row_of(monkeypatch, scores, holds=holds)
    assert row.verdict == verdict
    assert bool(row.reason) == (verdict in (OPEN, NOT_RUN))
    assert bool(row.numbers) == (verdict != NOT_RUN)


def test_numbers_are_the_difference_with_its_interval_and_both_scores(monkeypatch):
    row = row_of(monkeypatch, (0.30, 0.31, 0.35))
    # differences .10, .10, .13: mean .11, deviation .0173, t(.975, 2) = 4.303, half width .0430
    assert row.numbers == (
        "+11.0 points of test MAP@R (95 % interval +6.7 to +15.3, 3 seeds). "
        "CCP:\u00a032.0 ± 2.6; One proxy:\u00a021.0 ± 1.0."
    )
    assert (row.data, row.study) == ("omniglot", STUDY)


def test_a_difference_that_is_not_significant_says_what_would_settle_it(monkeypatch):
    assert row_of(monkeypatch, (0.19, 0.24, 0.20)).reason.startswith("No significant difference; even 30 seeds")
    assert "would take about" in row_of(monkeypatch, (0.25, 0.22, 0.24)).reason
    assert "does not prove" in row_of(monkeypatch, EQUAL, holds="equal").reason


def test_a_method_is_compared_with_its_own_baseline_and_two_scores_of_the_same_runs_with_each_other(monkeypatch):
    monkeypatch.setattr(
        source_claims,
        "source_claims",
        lambda: (
            claim(studies=["methods-omniglot"], contrast="", method="Tuplet, cross-entropy"),
            claim(studies=["losses-digits"], contrast="", scores=["recall_at_1", "map_at_r"]),
        ),
    )
    method, scores = source_claims.table()
    assert method.verdict == REPRODUCED
    assert "N-pair:\u00a021.35" in method.numbers
    assert scores.verdict == REPRODUCED
    assert "mean of 36 variants" in scores.numbers


@pytest.mark.parametrize(("slope", "verdict"), [(-1, REPRODUCED), (1, NOT), (0, OPEN)])
def test_a_correlation_over_the_variants_decides_by_its_sign(monkeypatch, slope, verdict):
    study = studies.read("covering-birds")
    where = "A smaller covering radius of the training classes goes with a higher test MAP@R"
    runs = []
    for number, entry in enumerate(studies.expand(study, seeds=(0,))):
        radius = 0.01 * (number if slope else number % 2)
        score = 0.5 + slope * radius if slope else 0.01 * (number // 2)
        run = measured(entry, score)
        runs.append(run.model_copy(update={"scores": run.scores | {"tested_covering.train_radius": radius}}))
    stored = StudyResults(study="covering-birds", written="", torch="", machine="", data={}, runs=tuple(runs))
    monkeypatch.setattr(studies, "load", lambda name: stored if name == "covering-birds" else None)
    made = claim(studies=["covering-birds"], contrast="", correlation=where)
    monkeypatch.setattr(source_claims, "source_claims", lambda: (made,))
    (row,) = source_claims.table()
    assert row.verdict == verdict
    assert "rank correlation" in row.numbers


def test_results_of_a_study_that_has_changed_since_decide_nothing(monkeypatch):
    entry = next(entry for entry in studies.expand(studies.read(STUDY)) if entry.variant == "CCP")
    run = measured(entry, 0.3).model_copy(update={"digest": "0" * 64})
    stored = StudyResults(study=STUDY, written="", torch="", machine="", data={}, runs=(run,))
    monkeypatch.setattr(studies, "load", lambda name: stored)
    monkeypatch.setattr(source_claims, "source_claims", lambda: (claim(),))
    (row,) = source_claims.table()
    assert (row.verdict, row.reason) == (NOT_RUN, "The study has changed since its results were written.")


def test_claims_without_a_study_or_with_an_unknown_one_have_a_reason(monkeypatch):
    claims = claim(studies=[], contrast="", reason="A drawing."), claim(studies=["nowhere"]), claim(contrast="Nothing")
    monkeypatch.setattr(source_claims, "source_claims", lambda: claims)
    assert [(row.verdict, row.reason) for row in source_claims.table()] == [
        (OPEN, "A drawing."),
        (NOT_RUN, "No study of this release asks this question."),
        (NOT_RUN, "No study of this release asks this question."),
    ]


def test_a_claim_that_an_erratum_refutes_is_not_reproduced_unless_the_erratum_is_unknown(monkeypatch):
    claims = [claim(studies=[], contrast="", erratum=number) for number in (113, 9999)]
    monkeypatch.setattr(source_claims, "source_claims", lambda: tuple(claims))
    refuted, unknown = source_claims.table()
    assert refuted.verdict == NOT
    assert refuted.numbers.startswith("Erratum 113: Recurrent network")
    assert (unknown.verdict, unknown.reason) == (NOT_RUN, "This release has no erratum 9999.")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "WEDL"}, "give one of contrast, correlation and method"),
        ({"studies": []}, "give studies, the erratum"),
    ],
)
def test_an_ambiguous_claim_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        claim(**changes)


def test_a_mistake_in_the_file_is_named(monkeypatch, tmp_path):
    bad = tmp_path / "claims.toml"
    bad.write_text('[[claims]]\nsource = "a"\nwhere = "b"\nclaim = "c"\nstudy = "d"\n')
    monkeypatch.setattr(source_claims, "FILE", bad)
    source_claims.source_claims.cache_clear()
    with pytest.raises(SpecError, match=r"claims\.toml: claims\.0\.study: unknown key; did you mean studies\?"):
        source_claims.source_claims()
    source_claims.source_claims.cache_clear()


@pytest.mark.parametrize("each", source_claims.source_claims(), ids=lambda each: each.claim[:40])
def test_every_claim_names_a_question_that_its_studies_ask(each):
    for name in each.studies:
        if name in studies.names():
            assert source_claims.tests(each, studies.read(name)), f"{name} has no such contrast or method"


def test_each_source_has_claims_and_the_summary_counts_them():
    rows = source_claims.table()
    assert {row.claim.source.split()[0] for row in rows} == {"Karaman", "Psomas", "Can", "Gürbüz", "Zabihzadeh"}
    assert f"{len(rows)} tests" in source_claims.summary(rows)
    assert [row["verdict"] for row in source_claims.as_rows(rows)] == [row.verdict for row in rows]
