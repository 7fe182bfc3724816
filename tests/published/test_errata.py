"""The errata: every stated number compared with the printed functions, the catalogue and automatic differentiation.

Their count is compared with the notes next to the repository if these exist.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.losses.proxies import smoothed_cross_entropy
from dmlcore.published import checks
from dmlcore.published.checks.printed_tables import printed
from dmlcore.published.errata import KINDS, METHODS, errata, erratum, search
from dmlcore.published.printed_formulas import COUNTEREXAMPLES, POINTS, compare, points
from tests.members import in_one_case


def agrees(stated: tuple[str, str], gradient: torch.Tensor) -> bool:
    return all(checks.Number("", text, float(x)).agrees for text, x in zip(stated, gradient, strict=True))


SCIENCE = Path(__file__).parents[3] / "shared" / "science"
OF_SOURCE = {"K": 47, "G": 28, "C": 15, "Z": 12, "P": 19}
NOTED = 110  # errata with higher numbers were found after the notes were written


def test_every_source_has_its_errata():
    assert Counter(e.source for e in errata()) == OF_SOURCE


@pytest.mark.skipif(not SCIENCE.is_dir(), reason="the notes are not next to the repository")
def test_there_are_as_many_as_the_notes_list():
    found = Counter({"K": len(entries("triplet-losses.md", "## 2. Errata"))})
    found["G"] = len(entries("pooling-and-proxies.md", "## 17. ERRATA"))
    found.update(place[0] for place in entries("losses-and-ensembles.md", "## 15. ERRATA") if place[0] in OF_SOURCE)
    assert found == Counter(e.source for e in errata() if e.number <= NOTED)


def entries(note: str, title: str) -> list[str]:
    """Return the first cells of the table of errata in a note."""
    section = (SCIENCE / note).read_text("utf-8").partition(f"\n{title}")[2].partition("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]
    return rows[1:]


def test_all_are_there_and_whole():
    assert [e.number for e in errata()] == list(range(1, len(errata()) + 1))
    for e in errata():
        assert e.title
        assert e.where
        assert e.printed != e.true
        assert e.kind in KINDS
        assert set(e.checked) <= set(METHODS)
        assert set(e.losses) <= set(losses.names())
        assert bool(e.printed_latex) == bool(e.true_latex)


@in_one_case(e=[e for e in errata() if e.printed_latex])
def test_both_formulas_are_balanced_and_mark_a_difference(e):
    for latex in (e.printed_latex, e.true_latex):
        plain = latex.replace(r"\diff", "")
        assert plain.count("{") == plain.count("}")
    assert r"\diff{" in e.printed_latex
    assert r"\diff{" in e.true_latex


def test_every_gradient_erratum_of_a_triplet_loss_has_a_counterexample():
    assert {e.number for e in errata() if e.kind == "gradient" and e.losses} <= set(COUNTEREXAMPLES)
    assert {1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 21, 22, 85} == set(COUNTEREXAMPLES)


@in_one_case(number=COUNTEREXAMPLES)
def test_the_stated_coordinates_are_those_of_both_sides(number):
    example = COUNTEREXAMPLES[number]
    found = compare(example, *points(example), losses.formula(example.loss).resolve(example.hyper or {}))
    for shown in erratum(number).shown:
        at = POINTS.index(shown.point)
        assert agrees(shown.printed, found.printed[at]), found.printed[at]
        assert agrees(shown.true, found.true[at]), found.true[at]
        assert not agrees(shown.printed, found.true[at]), "a counterexample must distinguish the two sides"
    assert float(found.difference) > 0.1


@in_one_case(number=COUNTEREXAMPLES)
def test_printed_and_true_differ_in_general(number):
    """The errata are not specific to their triplets: printed and true sides also differ on random triplets."""
    example = COUNTEREXAMPLES[number]
    hyper = losses.formula(example.loss).resolve(example.hyper or {})
    generator = torch.Generator().manual_seed(number)
    triplet = torch.randn(3, 50, 8, dtype=torch.float64, generator=generator)
    found = compare(example, *triplet, hyper)
    assert float(found.difference.median()) > 0.01


@in_one_case(number=[n for n, e in COUNTEREXAMPLES.items() if e.truth is None])
def test_the_true_side_is_what_training_uses(number):
    """If the loss is active, its batch gradient is that of the true side."""
    example = COUNTEREXAMPLES[number]
    hyper = dict(example.hyper or {})
    formula = losses.formula(example.loss)
    if formula.margin:
        hyper[formula.margin.name] = 50.0
    loss = losses.create(example.loss, **hyper)
    triplet = [x.requires_grad_() for x in points(example)]
    raw = loss.raw(*triplet)
    true = compare(example, *points(example), formula.resolve(hyper)).true
    for mine, theirs in zip(torch.autograd.grad(raw, triplet), true, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-12)


def test_the_printed_moving_energy_divides_by_zero_on_isosceles_triplets():
    example = COUNTEREXAMPLES[5]
    a, p, _ = points(example)
    found = compare(example, a, p, torch.tensor([0.0, 1.0], dtype=torch.float64), {"rho": 0.3})
    assert found.printed_energy is not None
    assert not found.printed_energy.isfinite()
    assert found.true_energy.isfinite()


@in_one_case(number=sorted(checks.checked()))
def test_the_stated_numbers_are_recomputed(number):
    found, decisions = checks.numbers(number), checks.decisions(number)
    assert found or decisions
    for x in found:
        assert x.agrees, f"{x.what}: stated {x.stated}, computed {x.value!r}"
    for decision in decisions:
        assert decision.decides, decision


@in_one_case(e=[e for e in errata() if e.source != "K"])
def test_what_an_example_states_is_among_what_is_computed(e):
    """Every decimal in a text is computed by the check, in a table, or an input of the example."""
    computed = [x for d in checks.decisions(e.number) for x in (d.printed, d.true, d.referee) if x is not None]
    computed += [x.value for x in checks.numbers(e.number)]
    for stated in re.findall(r"-?\d+\.\d{3,}", e.example):
        assert any(checks.Number("", stated, x).agrees for x in computed), (stated, computed)


@in_one_case(number=checks.CURVES)
def test_a_counterexample_along_a_number_is_decided_all_the_way(number):
    curve = checks.CURVES[number]
    assert curve.low <= curve.at <= curve.high
    assert curve.decision(curve.at).decides
    along = [curve.decision(float(x)) for x in curve.places(7)]
    assert all(d.true_holds for d in along)
    assert sum(d.printed_holds for d in along) <= len(along) // 2 + 1, (
        "the printed statement fails for a large part of the range"
    )


def test_a_counterexample_is_drawn_from_end_to_end():
    for number, curve in checks.CURVES.items():
        drawn = checks.drawn(number)
        assert (drawn.x[0], drawn.x[-1]) == (drawn.dots[0], drawn.dots[-1]) == (curve.low, curve.high)
        assert np.isfinite(drawn.true).all()
        places = np.interp(drawn.dots, drawn.x, drawn.true)
        off = drawn.referee - places
        assert (off if curve.bound else np.abs(off)).max() < 0.05 * max(1.0, np.ptp(drawn.true)), number
    assert checks.CURVES[80].places(13).tolist() == sorted({round(x) for x in np.linspace(2, 20, 13)})


def test_a_decision_needs_the_true_side_to_hold_and_the_printed_one_not_to():
    assert checks.Decision("", 3.0, 2.0, 2.0, "").decides
    assert not checks.Decision("", 2.0, 2.0, 2.0, "").decides, "both sides hold"
    assert not checks.Decision("", 3.0, 2.0, 2.1, "").decides, "neither side holds"
    assert checks.Decision("", None, 2.0, 2.0, "").decides
    assert checks.Decision("", float("nan"), 2.0, 2.0, "").decides
    assert checks.Decision("", float("inf"), 2.0, 2.0, "").decides, "a side that divides by zero never holds"
    assert not checks.Decision("", 1.0, float("nan"), 2.0, "").decides
    assert checks.Decision("", 1.0, 2.0, 1.5, "", bound=True).decides
    assert not checks.Decision("", 2.0, 2.5, 1.5, "", bound=True).decides, "the printed bound holds too"
    assert checks.Decision("", 1.0, 12.48, 12.4799, "", tolerance=0.005).decides


def test_a_number_is_judged_to_its_digits():
    assert checks.Number("", "0.0543", 0.05434).agrees
    assert not checks.Number("", "0.0543", 0.05436).agrees
    assert checks.Number("", "6.44e7", 6.443e7).agrees
    assert not checks.Number("", "6.44e7", 6.45e7).agrees


def test_all_are_computed_but_slips_of_words():
    words = {e.number for e in errata()} - checks.checked() - set(COUNTEREXAMPLES)
    assert {erratum(number).kind for number in words} == {"text"}
    assert words == {10, 13, 16, 23, 33, 44, 46, 81, 90, 115, 116, 118}, "for these errata nothing can be computed"


def test_the_design_found_right_is_the_half_fraction():
    """Table 5.4 of Gürbüz: eight runs, each level of each factor four times, the product of the four signs is +1."""
    settings = {row.setting for row in printed("G-5.4").rows} - {"baseline"}
    levels = [[float(part.split("=")[1]) for part in setting.split(", ")] for setting in settings]
    signs = np.array([np.where(np.array(column) == max(column), 1, -1) for column in zip(*levels, strict=True)])
    assert signs.shape == (4, 8)
    assert (signs.prod(0) == 1).all()
    assert (signs @ signs.T == 8 * np.eye(4)).all(), "all pairs of factors are balanced"


def test_the_label_smoothing_found_right_is_that_of_torch():
    logits = torch.tensor([[2.0, 0.5, -1.0], [0.1, 0.2, 0.3]], dtype=torch.float64)
    labels, gamma = torch.tensor([0, 2]), 0.15
    targets = (1 - gamma) * torch.nn.functional.one_hot(labels, 3) + gamma / 3  # Eq. 19, 20 of Zabihzadeh
    stated = -(targets * logits.log_softmax(1)).sum(1).mean()
    assert torch.allclose(stated, torch.nn.functional.cross_entropy(logits, labels, label_smoothing=gamma))
    assert torch.allclose(stated, smoothed_cross_entropy(logits, labels, gamma, "all"))


def test_search():
    assert search() == list(errata())
    assert {e.source for e in search(source="G")} == {"G"}
    assert search(source="G", loss="angular") == []
    assert [e.number for e in search(text="gürbüz lipschitz lip(v)")] == [51]
    assert {e.number for e in search(loss="angular")} == {4, 15}
    assert [e.number for e in search(text="Isosceles  printed", source="K")] == [5]
    assert {e.kind for e in search(kind="text")} == {"text"}
    assert [e.number for e in search(numbers=frozenset({3, 7}))] == [3, 7]
    assert search(text="no such words") == []


@in_one_case(number=[0, 1000, -1])
def test_an_unknown_number_names_the_range(number):
    with pytest.raises(KeyError, match=f"1 to {len(errata())}"):
        erratum(number)
