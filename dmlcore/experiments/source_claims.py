"""Table of the sources' claims, with a verdict on each that is computed from the results of a study.

`presets/claims.toml` names a claim and the contrast that tests it; numbers and verdicts are never written there. A
claim is reproduced if the contrast is significant in the claimed direction, not reproduced if it is significant in the
opposite direction or refuted by an exact computation, and cannot be decided here otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dmlcore.experiments import studies, trial_ledger
from dmlcore.experiments.studies import Measured, Study, StudyRequest, StudyResults, comparisons
from dmlcore.experiments.studies.by_seed import by_seed, mean_of, points
from dmlcore.experiments.studies.results import TITLES
from dmlcore.presets import CLAIMS as FILE
from dmlcore.published.errata import errata
from dmlcore.significance import verdicts
from dmlcore.significance.association import associate
from dmlcore.significance.noise import ends
from dmlcore.significance.power import FEASIBLE, LEVEL
from dmlcore.significance.verdicts import Gap, Values
from dmlcore.spec.plan import Text, read_entries
from dmlcore.spec.sections import Section

REPRODUCED, NOT, OPEN, NOT_RUN = "reproduced", "not reproduced", "cannot be decided here", "not run"
NO_RESULTS = "The study has no results for this question yet."
VERDICTS = (REPRODUCED, NOT, OPEN, NOT_RUN)


class SourceClaim(Section):
    """Claim of a source, and the contrasts or methods of studies that test it."""

    source: Text = Field(description="Author and year")
    where: Text = Field(description="Section, table or figure of the source")
    claim: Text = Field(description="One sentence")
    studies: tuple[str, ...] = Field((), strict=False, description="Names of studies; one row each")
    contrast: str = Field("", description="Statement of the contrast (`where`) in these studies")
    correlation: str = Field("", description="Statement of the correlation (`where`) in these studies")
    method: str = Field("", description="Variant of these studies that is compared with its own baseline (`against`)")
    scores: Annotated[tuple[str, ...], Field(strict=False, max_length=2)] = Field(
        (), description="Two scores of the same runs, averaged over the variants; the first is claimed to be higher"
    )
    holds: Literal["yes", "no", "equal"] = Field(
        "yes",
        description="Outcome of the contrast if the claim holds; equal: the source reports no difference, which a "
        "significant difference refutes and nothing here can confirm",
    )
    erratum: int = Field(0, ge=0, description="Number of the erratum that refutes the claim by exact computation")
    reason: str = Field("", description="Reason why no study can decide the claim, if there are no studies")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.studies and sum(map(bool, (self.contrast, self.correlation, self.method, self.scores))) != 1:
            raise ValueError("give one of contrast, correlation and method, which the studies must have, or scores")
        if bool(self.studies) + bool(self.erratum) + bool(self.reason) != 1:
            raise ValueError("give studies, the erratum that refutes the claim, or the reason why nothing decides it")
        return self


@dataclass(frozen=True)
class ClaimRow:
    """Row of the table: a claim tested by one study.

    Attributes:
        claim: The claim.
        study: Name of the study; "" if the claim is decided by an erratum, or by nothing.
        data: Name of the data set; "" without a study.
        runs: Number of training runs that were made for this claim, trials outside studies included.
        numbers: Difference of both sides with its 95 % interval, and the score of each side, as a sentence.
        verdict: One of VERDICTS.
        reason: Reason for a verdict other than REPRODUCED and NOT.
    """

    claim: SourceClaim
    study: str
    data: str
    runs: int
    numbers: str
    verdict: str
    reason: str


@lru_cache(maxsize=1)
def source_claims() -> tuple[SourceClaim, ...]:
    """Return the claims of claims.toml; raise SpecError with the reasons if the file is not valid."""
    return read_entries(FILE, "claims", SourceClaim)


def results_of_claims() -> tuple[object, ...]:
    """Return the claims, and the studies and results that decide them.

    The objects are identical until one of their files changes, so they can serve as a cache key.
    """
    known = set(studies.names())
    named = dict.fromkeys(name for claim in source_claims() for name in claim.studies if name in known)
    return (source_claims(), *(source for name in named for source in trial_ledger.sources(name)))


def table() -> list[ClaimRow]:
    """Return one row per claim and study, in the order of the file; raise SpecError if a study cannot be read."""
    return [
        _row(claim, study)
        for claim in source_claims()
        for study in claim.studies or [""]
    ]  # fmt: skip


def _row(claim: SourceClaim, name: str) -> ClaimRow:
    if claim.erratum:
        return _row_of_erratum(claim)
    if not name:
        return ClaimRow(claim, "", "", 0, "", OPEN, claim.reason)
    if name not in studies.names() or not tests(claim, studies.read(name)):
        return ClaimRow(claim, name, "", 0, "", NOT_RUN, "No study of this release asks this question.")
    study, results = studies.read(name), studies.load(name)
    data, runs = study.base.data.name, trial_ledger.ledger(name).runs
    if results and _is_outdated(name, results):
        return ClaimRow(claim, name, data, runs, "", NOT_RUN, "The study has changed since its results were written.")
    if claim.correlation:
        return _row_of_correlation(claim, name, study, results.runs if results else ())
    tested = _test(claim, study, results.runs if results else ())
    if tested is None:
        return ClaimRow(claim, name, data, runs, "", NOT_RUN, NO_RESULTS)
    sides, scores, gap, answer, title = tested
    numbers = _describe(sides, scores, gap, title)
    verdict = _verdict(claim.holds, answer)
    return ClaimRow(claim, name, data, runs, numbers, verdict, _reason(claim.holds, gap) if verdict == OPEN else "")


def _is_outdated(name: str, results: StudyResults) -> bool:
    """Return True if a study, as it is now, lacks a run of its written results."""
    known = {entry.digest() for entry in StudyRequest(study=name).entries()}
    return any(run.digest not in known for run in results.runs)


def _row_of_correlation(claim: SourceClaim, name: str, study: Study, results: Sequence[Measured]) -> ClaimRow:
    """Return the row of a claim on a rank correlation over the variants of a study."""
    asked = next(each for each in study.correlations if each.where == claim.correlation)
    row = ClaimRow(claim, name, study.base.data.name, trial_ledger.ledger(name).runs, "", NOT_RUN, NO_RESULTS)
    pairs = points(results, asked.score, study.judged, asked.over)
    correlation = associate(*zip(*pairs.values(), strict=True)) if pairs else None
    if correlation is None:
        return row
    sign = correlation.sign() * (-1 if asked.falling else 1)
    numbers = f"{asked.title[:1].upper()}{asked.title[1:]} and MAP@R: {correlation.words}."
    if sign == 0:
        return replace(row, numbers=numbers, verdict=OPEN, reason="The interval contains 0.")
    return replace(row, numbers=numbers, verdict=_verdict(claim.holds, "yes" if sign > 0 else "no"), reason="")


def _row_of_erratum(claim: SourceClaim) -> ClaimRow:
    """Return the row of a claim that an erratum refutes; its check recomputes both sides in the test suite."""
    erratum = next((each for each in errata() if each.number == claim.erratum), None)
    if erratum is None:
        return ClaimRow(claim, "", "", 0, "", NOT_RUN, f"This release has no erratum {claim.erratum}.")
    return ClaimRow(claim, "", "", 0, f"Erratum {erratum.number}: {erratum.title}.", NOT, "")


Tested = tuple[tuple[str, str], tuple[Values, Values], Gap, str, str]  # sides, scores, difference, answer, score title


def tests(claim: SourceClaim, study: Study) -> bool:
    """Return True if a study has the contrast or the method that a claim names."""
    if claim.method:
        return any(variant.name == claim.method and variant.against for variant in study.variants)
    asked = study.correlations if claim.correlation else study.contrasts
    return bool(claim.scores) or any(each.where == (claim.correlation or claim.contrast) for each in asked)


def _test(claim: SourceClaim, study: Study, results: Sequence[Measured]) -> Tested | None:
    """Return the comparison that tests a claim, None if it is not measured.

    Like on the study's page, the answer is corrected for all comparisons of the same kind in the study.
    """
    if claim.method:
        return _test_method(claim.method, study, results)
    return _test_scores(claim.scores, results) if claim.scores else _test_contrast(claim.contrast, study, results)


def _test_method(method: str, study: Study, results: Sequence[Measured]) -> Tested | None:
    for each in comparisons.compare(study, results):
        if each.variant == method:
            answer = {comparisons.AHEAD: "yes", comparisons.BEHIND: "no"}.get(each.answer, verdicts.UNDECIDED)
            measure = studies.MEASURES.get(study.judged, study.judged)
            return (each.variant, each.baseline), each.scores, each.gap, answer, measure
    return None


def _test_contrast(contrast: str, study: Study, results: Sequence[Measured]) -> Tested | None:
    known = []
    group = next(each.aside for each in study.contrasts if each.where == contrast)
    for asked in (each for each in study.contrasts if each.aside == group):
        values = by_seed(results, asked.score)
        pair = mean_of(values, asked.of), mean_of(values, asked.against)
        if all(pair):
            known.append((asked, pair))
    answers = verdicts.contrasts([pair for _, pair in known], [asked.lower for asked, _ in known])
    for (asked, pair), answer in zip(known, answers, strict=True):
        if asked.where == contrast:
            sides = asked.sides or (verdicts.join_names(asked.of), verdicts.join_names(asked.against))
            return sides, pair, verdicts.gap(*pair), answer, asked.title
    return None


def _test_scores(scores: Sequence[str], results: Sequence[Measured]) -> Tested | None:
    values = [by_seed(results, score) for score in scores]
    variants = [name for name in values[0] if name in values[1]]
    if not variants:
        return None
    pair = mean_of(values[0], variants), mean_of(values[1], variants)
    pair = {s: pair[0][s] for s in pair[0] if s in pair[1]}, {s: pair[1][s] for s in pair[1] if s in pair[0]}
    if not all(pair):
        return None
    answer = verdicts.contrasts([pair], [False])[0]
    first, second = (TITLES.get(score, score) for score in scores)
    return (first, second), pair, verdicts.gap(*pair), answer, f"mean of {len(variants)} variants"


def _describe(sides: tuple[str, str], scores: tuple[Values, Values], gap: Gap, title: str) -> str:
    """Return the difference of two sides with its interval, then the score of each, in percent."""
    noise = f"95 % interval {ends(*gap.interval)}, {gap.count} seeds" if gap.interval else f"seeds: {gap.count}"
    first, second = (verdicts.spread(*verdicts.mean_and_deviation(side.values())) for side in scores)
    difference = verdicts.spread(gap.mean, gap.deviation, sign=True).partition(" ±")[0]
    of_sides = f"{sides[0]}:\u00a0{first}; {sides[1]}:\u00a0{second}"  # a name may end with a number
    return f"{difference} points of {title} ({noise}). {of_sides}."


def _verdict(holds: str, answer: str) -> str:
    if answer == verdicts.UNDECIDED:
        return OPEN
    return REPRODUCED if answer == holds else NOT


def _reason(holds: str, gap: Gap) -> str:
    """Return why a difference that is not significant decides nothing."""
    if gap.p is None:
        return "One seed, so the noise is unknown."
    if gap.p < LEVEL:
        return "Significant alone, but not after the correction for all comparisons of the study."
    if holds == "equal":
        return "No significant difference, which does not prove that there is none."
    if not gap.needed or gap.needed > FEASIBLE:
        return f"No significant difference; even {FEASIBLE} seeds would not settle a difference of this size."
    return f"No significant difference; settling one of this size would take about {gap.needed} seeds."


def summary(rows: Sequence[ClaimRow]) -> str:
    """Return the number of rows by verdict, as a sentence."""
    counts = Counter(row.verdict for row in rows)
    named = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f"{len({id(row.claim) for row in rows})} claims, {len(rows)} tests: {named}."


def as_rows(rows: Sequence[ClaimRow]) -> list[dict[str, str]]:
    """Return the table as texts by column, for the terminal and the documentation."""
    return [
        {
            "source": f"{row.claim.source}, {row.claim.where}",
            "claim": row.claim.claim,
            "data": row.data,
            "runs": str(row.runs or ""),
            "here": row.numbers,
            "verdict": row.verdict,
            "reason": row.reason,
            "study": row.study,
        }
        for row in rows
    ]
