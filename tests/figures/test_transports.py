"""Transport as arrays, figure and script: three views of one solution."""

from __future__ import annotations

import numpy as np

from dmlcore.figures.transports import snippet, transport_arrays
from dmlcore.pooling.analysis.red_blue import STEPS, cross

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
