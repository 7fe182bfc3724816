"""HTML table of claims: one row per test, with the claim to the left of its tests."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from dmlcore.experiments import studies
from dmlcore.experiments.source_claims import NOT, NOT_RUN, OPEN, REPRODUCED, ClaimRow
from pages.shared.widgets.study.places import address_of
from pages.shared.words import titles

MARKS = {REPRODUCED: "✓", NOT: "✗", OPEN: "?", NOT_RUN: "–"}
CLASSES = {REPRODUCED: "yes", NOT: "no", OPEN: "open", NOT_RUN: "none"}
STYLE = """<style>
.claims { width: 100%; border-collapse: collapse; line-height: 1.4; }
.claims td { padding: .55rem .9rem .55rem 0; vertical-align: top; border: 0; overflow-wrap: anywhere; }
.claims tr.first td { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
.claims .claim { width: 34%; }
.claims .verdict { width: 13rem; padding-right: 1.6rem; white-space: nowrap; font-weight: 600; }
.claims .verdict b { display: inline-block; width: 1.35rem; height: 1.35rem; margin-right: .45rem; line-height: 1.35rem;
  border-radius: 50%; text-align: center; color: var(--on-primary); }
.claims .yes b { background: var(--right-fill); } .claims .no b { background: var(--wrong-fill); }
.claims .open b { background: var(--open-fill); } .claims .none b { background: none; color: inherit; }
.claims small { display: block; opacity: .78; font-size: .86rem; }
.claims a { color: inherit; text-decoration: underline; text-underline-offset: .15em; }
@media (max-width: 700px) {
  .claims, .claims tbody, .claims tr, .claims td { display: block; width: auto !important; }
  .claims td { padding: .15rem 0; } .claims tr { padding: .3rem 0; }
  .claims tr.first td:not(.claim) { border: 0; }
  .claims .claim { padding-top: .6rem; }
}
</style>"""


def table(rows: Sequence[ClaimRow]) -> str:
    """Return the table of some rows, in their order; rows with the same claim are adjacent."""
    lines = []
    for _, tests in groupby(rows, lambda row: id(row.claim)):
        first, *others = tests
        claim = first.claim
        cell = (
            f'<td class="claim" rowspan="{1 + len(others)}">{escape(claim.claim)}'
            f"<small>{escape(claim.where)}</small></td>"
        )
        lines += [f'<tr class="first">{cell}{_test(first)}</tr>', *(f"<tr>{_test(row)}</tr>" for row in others)]
    return f'{STYLE}<table class="claims"><tbody>{"".join(lines)}</tbody></table>'


def _test(row: ClaimRow) -> str:
    verdict = (
        f'<td class="verdict {CLASSES[row.verdict]}"><b aria-hidden="true">{MARKS[row.verdict]}</b>{row.verdict}</td>'
    )
    facts = [f"{row.runs} runs", escape(titles.data_title(row.data))] if row.data else []
    if row.study in studies.names():
        title = studies.read(row.study).title
        # a full address of this app, in the same tab
        facts.append(f'<a href="{escape(address_of(row.study))}" target="_self">{escape(title)}</a>')
    if row.claim.erratum and row.numbers:
        facts.append(f'<a href="errata?erratum={row.claim.erratum}" target="_self">Exact computation</a>')
    numbers = row.numbers.replace(" ± ", "\u00a0±\u00a0")
    result = "<br>".join(escape(text) for text in (numbers, row.reason) if text)
    return f"{verdict}<td>{result}<small>{' · '.join(facts)}</small></td>"
