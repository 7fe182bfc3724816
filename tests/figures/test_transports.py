"""Transport as arrays, figure and script: three views of one solution."""

from __future__ import annotations

import numpy as np
import pytest

from dmlcore.figures.transports import draw_transport, save_figure, snippet, transport_arrays
from dmlcore.pooling.analysis.red_blue import STEPS, cross, figure

PROTOTYPES = np.array([[STEPS, 0], [0, STEPS], [60, 60]])


def test_arrays_obey_the_constraints():
    found = transport_arrays(cross(), PROTOTYPES, mu=0.3, epsilon=8.0, sweeps=30)
    np.testing.assert_allclose(found["rho"] + found["pi"].sum(0), 0.01, atol=1e-13)
    np.testing.assert_allclose(found["weights"][1], (0.01 - found["rho"]) / 0.3, atol=1e-13)
    np.testing.assert_allclose(found["pooled"], found["weights"] @ found["features"])
    assert found["sweep_errors"].shape == (30,)
    assert found["sweep_biases"].shape == (31,)
    assert len(found["newton_errors"]) == len(found["newton_biases"])
    assert found["newton_biases"][-1] == found["bias"]


@pytest.mark.parametrize(("mu", "epsilon", "dark"), [(0.2, 5.0, False), (1.0, 450.0, True)])
def test_the_figure_says_its_numbers(mu, epsilon, dark):
    drawn = draw_transport(figure(), PROTOTYPES, mu=mu, epsilon=epsilon, sweeps=12, dark=dark, size=1.5)
    titles = [axes.get_title(loc="left") for axes in drawn.axes]
    assert titles[0] == "map\n50 of 100 pixels informative"
    weights = transport_arrays(figure(), PROTOTYPES, mu=mu, epsilon=epsilon)["weights"]
    for k, (axes, expected) in enumerate(zip(drawn.axes[1:4], weights, strict=True)):
        np.testing.assert_array_equal(axes.images[0].get_array().ravel(), expected)
        assert f"{expected.reshape(10, 10)[:5, :5].sum() + expected.reshape(10, 10)[5:, 5:].sum():.3f}" in titles[k + 1]
    assert save_figure(drawn, format="png", dpi=40).startswith(b"\x89PNG")


def test_the_script_computes_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = snippet(cross(), PROTOTYPES, mu=0.3, epsilon=8.0, sweeps=5, dark=True)
    computes, draws = text.split("figure = ")
    names: dict = {}
    exec(compile(computes, "snippet.py", "exec"), names)
    expected = transport_arrays(cross(), PROTOTYPES, mu=0.3, epsilon=8.0)
    np.testing.assert_array_equal(names["weights"], expected["weights"][1])
    assert draws.startswith("draw_transport(pixels, prototypes, mu=mu, epsilon=epsilon, sweeps=5, dark=True)")
    compile(draws, "snippet.py", "exec")
