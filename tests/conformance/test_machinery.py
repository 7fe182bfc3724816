"""Comparison code on artificial calls: verdicts, the page, and messages for a missing library."""

from __future__ import annotations

from importlib import metadata

import pytest
import torch
from typer.testing import CliRunner

from dmlcore.cli.main import app, main
from dmlcore.conformance import table
from dmlcore.conformance.case import (
    Case,
    Library,
    LibraryMissing,
    NotRun,
    Outcome,
    compare,
    deviation,
    run,
    selection_masks,
)
from dmlcore.conformance.vectors import BALANCED, UNEVEN
from tests.members import in_one_case


def times(factor: float, noise: float = 0.0):
    """Return a computation: factor times the sum of the embeddings, and its gradient."""

    def computed(v):
        gradient = torch.full_like(v.embeddings, factor)
        gradient[0, 0] += noise
        return Outcome(factor * v.embeddings.sum().item(), {"embeddings": gradient})

    return computed


def fails(error: Exception):
    def computed(v):
        raise error

    return computed


def case(**rest) -> Case:
    return Case("sum", "loss", "A sum", "nobody", times(1.0), on=(BALANCED,), **rest)


@in_one_case(
    given=[
        (times(1.0), times(1.0), "agrees"),
        (None, times(1.0), "agrees"),
        (None, times(1.0, 1e-8), "agrees, to float32"),
        (times(1.0), times(2.0), "**dmlcore is right**; it computes: twice as much"),
        (times(1.0), times(1.0, 1e-3), "**dmlcore is right**"),
        (times(2.0), times(1.0), "**the library is right**, dmlcore is not; dmlcore computes: twice as much"),
        (times(3.0), times(4.0), "neither is as printed"),
        (None, times(3.0), "not as printed"),
        (times(1.0), times(float("nan")), "**dmlcore is right**"),
        (None, fails(IndexError("out of\nbounds")), "the library raises IndexError: out of bounds"),
        (None, fails(AssertionError()), "the library raises AssertionError"),
        (None, fails(NotRun("no gloo")), "not run: no gloo"),
        (None, fails(ModuleNotFoundError("No module named 'x'")), "not run: No module named 'x'"),
    ]
)
def test_who_is_right_follows_from_the_numbers(given):
    ours, theirs, verdict = given
    row = compare(case(ours=ours, variants={"twice as much": times(2.0)}), BALANCED, theirs)
    assert row.verdict == verdict
    assert row.as_printed == verdict.startswith("agrees")


def test_a_deviation_counts_values_gradients_and_shapes():
    printed = times(1.0)(BALANCED)
    assert abs(printed.value) > 1
    assert deviation(printed, printed) == 0
    assert deviation(times(1.0, 0.5)(BALANCED), printed) == pytest.approx(0.5)
    assert deviation(Outcome(printed.value + 1, printed.arrays), printed) == pytest.approx(
        1 / max(1, abs(printed.value))
    )
    assert deviation(Outcome(printed.value * (1 + 1e-10), printed.arrays), printed) == pytest.approx(1e-10, rel=1e-3)
    assert deviation(Outcome(printed.value), printed) == float("inf")
    assert deviation(Outcome(printed.value, {"embeddings": torch.ones(2, 2)}), printed) == float("inf")


def test_chosen_tuples_are_compared_as_sets():
    some = (torch.tensor([0, 1]), torch.tensor([1, 0]), torch.tensor([2, 2]))
    turned = tuple(index.flip(0) for index in some)
    assert deviation(selection_masks(3, some), selection_masks(3, turned)) == 0
    assert deviation(selection_masks(3, tuple(index[:1] for index in some)), selection_masks(3, some)) == 1
    assert selection_masks(3, some[:2], ([], [])).value == 2


def rows_and_library(name: str, call):
    library = Library(name, name, {"sum": call})  # installed packages represent libraries here
    return library, run([case(), Case("other", "loss", "Not called", "nobody", times(1.0))], library)


def test_a_section_is_replaced_and_the_others_stay(tmp_path):
    page = tmp_path / "conformance.md"
    one, rows = rows_and_library("torch", times(1.0))
    other, differing = rows_and_library("numpy", times(2.0))
    assert [row.case.name for row in rows] == ["sum"]
    table.write(page, one, rows)
    table.write(page, other, differing)
    both = page.read_text()
    assert both.startswith(table.HEAD)
    assert f"## torch {metadata.version('torch')}" in both
    assert "| A sum | nobody | balanced | < 1e-9 | – |" in both
    assert "| 1e+00 | – | not as printed |" in both
    table.write(page, one, rows)
    assert page.read_text() == both
    table.write(page, other, rows_and_library("numpy", times(1.0))[1])
    assert "not as printed |" not in page.read_text()
    assert page.read_text().count("<!-- /") == 2


def test_a_missing_library_is_named_with_its_remedy(capsys, monkeypatch):
    library = Library("no-such-library", "no_such_module", {})
    with pytest.raises(LibraryMissing, match=r"no-such-library cannot .* 'pip install no-such-library'"):
        run([case()], library)
    monkeypatch.setattr("dmlcore.conformance.LIBRARIES", {library.name: library})
    assert CliRunner().invoke(app, ["conformance"]).output.split()[-3:] == ["pip", "install", "no-such-library"]
    monkeypatch.setattr("sys.argv", ["dml", "conformance", "no-such-library"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert "pip install no-such-library" in capsys.readouterr().err


def test_an_unknown_library_is_refused_with_the_known_ones():
    refused = CliRunner().invoke(app, ["conformance", "tensorflow"])
    assert "choose pytorch-metric-learning or open-metric-learning" in str(refused.exception)


def test_the_vectors_have_what_their_names_say():
    assert [UNEVEN.names.count(c) for c in range(UNEVEN.classes)] == [2, 3, 2, 4, 1, 0]
    assert [BALANCED.names.count(c) for c in range(BALANCED.classes)] == [3, 3, 3, 3]
