"""Printed formulas against golden numbers, dmlcore against the formulas, and libraries against the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from torch.multiprocessing.spawn import start_processes

from dmlcore import conformance
from dmlcore.conformance import LIBRARIES, table
from dmlcore.conformance.adapters import pml_processes
from dmlcore.conformance.case import SINGLE, deviation, run
from dmlcore.conformance.known import CASES as KNOWN
from dmlcore.conformance.known import EFFICIENT
from dmlcore.conformance.losses import of_pairs
from dmlcore.conformance.printed import pairs, proxies
from dmlcore.conformance.proxy_losses import of_proxies
from dmlcore.conformance.vectors import BALANCED, UNEVEN
from tests.members import in_one_case

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests" / "golden" / "losses.json").read_text())
PAGE = (ROOT / "docs" / "conformance.md").read_text()
CASES = [replace(case, printed=cache(case.printed)) for case in conformance.CASES]  # loops over pairs, in Python
BY_NAME = {case.name: case for case in CASES}
SAME = {  # golden case: ours of the same parameters
    "contrastive_l2_avg": "contrastive",
    "triplet_l2_avg": "triplet",
    "triplet_cos_mean": "triplet_cosine",
    "margin_l2_pair": "margin",
    "lifted_pairs_l2": "lifted",
    "lifted_cos": "lifted_rows",
    "multi_similarity": "multi_similarity",
    "multi_similarity_mined": "multi_similarity_mined",
    "normalized_softmax": "normalised_softmax",
    "proxy_anchor": "proxy_anchor",
}
TWO = ("balanced", "uneven")
SLOW = {"distance_weighted", "gathered", "gathered_efficiently", "histogram", "tuplet_margin", "ranked_list"}


@in_one_case(name=SAME)
def test_printed_formulas_give_the_golden_numbers(name):
    for golden in (case for case in GOLDEN["losses"] if case["name"] == name):
        vector = {"balanced": BALANCED, "uneven": UNEVEN}[golden["batch"]]
        check(BY_NAME[SAME[name]].printed(vector), golden)


def test_printed_arcface_gives_the_golden_numbers_beyond_pi():
    case = BY_NAME["arcface"]
    check(case.printed(case.on[-1]), GOLDEN["arcface_beyond_pi"])


def test_the_readings_that_libraries_take_give_the_golden_numbers():
    for golden in (case for case in GOLDEN["losses"] if case["name"] == "margin_l2_triplet"):
        vector = {"balanced": BALANCED, "uneven": UNEVEN}[golden["batch"]]
        (variant,) = BY_NAME["margin"].variants.values()
        check(variant(vector), golden)
    for golden in (case for case in GOLDEN["losses"] if case["name"] == "ntxent"):
        vector = {"balanced": BALANCED, "uneven": UNEVEN}[golden["batch"]]
        check(of_pairs(pairs.nt_xent, golden["params"]["tau"], all_below=False)(vector), golden)
    for golden in (case for case in GOLDEN["losses"] if case["name"] == "proxy_nca"):
        vector = {"balanced": BALANCED, "uneven": UNEVEN}[golden["batch"]]
        check(of_proxies(proxies.proxy_nca, 0.5)(vector), golden)  # on cosines there: half of the squared distance


def check(found, golden):
    assert found.value == pytest.approx(golden["value"], rel=1e-9, abs=1e-9)
    for name, weights in (("embeddings", "embeddings"), ("proxies", "W")):
        if name in found.arrays:
            gradient, expected = found.arrays[name], golden["grad"][weights]
            i, d = (torch.arange(size, dtype=torch.float64) for size in gradient.shape)
            assert gradient.norm().item() == pytest.approx(expected["norm"], rel=1e-8, abs=1e-8)
            probe = (gradient * (0.3 * i[:, None] - 0.8 * d + 0.2).cos()).sum().item()
            assert probe == pytest.approx(expected["dot"], rel=1e-8, abs=1e-8)


@in_one_case(kind=sorted({case.kind for case in CASES if case.ours}))
def test_dmlcore_is_as_printed_but_for_readings_that_are_named(kind):
    named = {}
    for case in (case for case in CASES if case.ours and case.kind == kind):
        for vector in case.on:
            found, printed = case.ours(vector), case.printed(vector)
            if deviation(found, printed) > case.tolerance:
                readings = [text for text, of in case.variants.items() if deviation(found, of(vector)) <= SINGLE]
                named[case.name, vector.name] = readings
    expected = {
        "loss": {
            **{("nt_xent", batch): ["the other positives are left out of the denominator"] for batch in TWO},
            **{("soft_triple_regularised", batch): ["1e-5 is added under the root"] for batch in TWO},
        }
    }
    assert named == expected.get(kind, {})


def sections() -> dict[str, tuple[list[str], list[str]]]:
    """Return, per library of the page, the rows of differences and of agreements."""
    found = {}
    for name in LIBRARIES:
        begin, end = table.marks(name)
        body = PAGE.split(begin, 1)[1].split(end, 1)[0]
        halves = body.split("### What is as printed")
        found[name] = tuple([line for line in half.splitlines() if line.startswith("| ")][2:] for half in halves)
    return found


def test_the_page_is_what_the_command_writes():
    assert PAGE.startswith(table.HEAD)
    titles = {case.title for case in CASES}
    for name, (differing, agreeing) in sections().items():
        assert re.search(rf"^## {name} \d+\.\d+", PAGE, re.M)
        assert differing
        assert agreeing
        for line, columns in [(line, table.DIFFERING) for line in differing] + [(x, table.AGREEING) for x in agreeing]:
            cells = re.split(r"(?<!\\) \| ", line.strip("| "))
            assert len(cells) == len(columns), line
            assert cells[0] in titles
        told = sum(int(count) for count in re.findall(r"[:;] (\d+) ", PAGE.split(f"## {name} ")[1].split("\n")[2]))
        batches = sum(len(re.split(r"(?<!\\) \| ", line.strip("| "))[2].split("; ")) for line in agreeing)
        assert told == len(differing) + batches
        assert told == sum(len(case.on) for case in CASES if case.name in LIBRARIES[name].calls)


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_page_says_what_the_library_computes_here(name):
    library = LIBRARIES[name]
    pytest.importorskip(library.module, reason=f"{name} is optional: pip install {name}")
    if f"## {name} {library.version}\n" not in PAGE:
        pytest.skip(f"the page was written with another version than {library.version}")
    rows = run([case for case in CASES if case.name not in SLOW], library)
    differing, agreeing = sections()[name]
    for row in rows:
        if not row.as_printed:
            assert table._line(table.differing(row)) in differing
    for cells in table.agreeing(rows):
        assert table._line(cells) in agreeing
    assert len(rows) > 15


def test_two_processes_that_gather_efficiently_lose_a_part_of_the_gradient(monkeypatch):
    pytest.importorskip("pytorch_metric_learning", reason="pytorch-metric-learning is optional")
    if not torch.distributed.is_gloo_available():
        pytest.skip("torch is built without gloo")
    # Forked ones compute the same; new ones import torch and the library first.
    monkeypatch.setattr(pml_processes, "spawn", partial(start_processes, start_method="fork"))
    cases = [case for case in KNOWN if case.name.startswith("gathered")]
    whole, efficient = run(cases, LIBRARIES["pytorch-metric-learning"])
    assert whole.verdict == "agrees"
    assert efficient.theirs_off > 0.01
    assert efficient.follows == EFFICIENT
