"""Numbers in the worked formulas are correct."""

from __future__ import annotations

import pytest

from dmlcore.geometry import derivations, margins

CASES = [
    (derivations.explain_margin_for_ellipse, margins.margin_for_ellipse, (1.0, 0.1, 0.0, 12 / 7)),
    (derivations.explain_margin_for_ellipse, margins.margin_for_ellipse, (0.5, -0.1, -1.0, 2.0)),
    (derivations.explain_margin_enclosing, margins.margin_enclosing, (0.5, 0.1, 1.0, 2.0, 1.0)),
    (derivations.explain_margin_enclosing, margins.margin_enclosing, (1e-7, 1e6, 0.0, 1.0, 1.0)),
    (derivations.explain_balanced_rho, margins.balanced_rho, (32, 4)),
]


@pytest.mark.parametrize(("explain", "value_of", "arguments"), CASES)
def test_value_and_latex(explain, value_of, arguments):
    found = explain(*arguments)
    assert found.value == value_of(*arguments)
    assert len(found.symbols) == len(found.numbers)
    for symbols, numbers in zip(found.symbols, found.numbers, strict=True):
        assert symbols.split("=")[0] == numbers.split("=")[0]
        for line in (symbols, numbers):
            assert "e+" not in line
            assert "e-" not in line


def test_the_example_of_appendix_b():
    found = derivations.explain_margin_for_ellipse(1.0, 0.1, 0.0, 12 / 7)
    results = [line.rsplit("=")[-1] for line in found.numbers]
    assert results == ["1.1", "1.5414", "2.7042", "1.64444", "4.63809"]
    assert derivations.explain_balanced_rho(32, 4).numbers[-1] == r"\rho=\frac{32-8}{2(8-1)}=1.71429"
