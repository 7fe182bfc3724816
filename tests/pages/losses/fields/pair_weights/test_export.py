"""Exports of the pair weights: the address of the page gives its file, and an invalid address gives a valid file."""

from __future__ import annotations

import io

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore import losses
from dmlcore.figures import pair_weights
from pages.losses.fields.pair_weights import export as pair_weights_export
from pages.losses.fields.pair_weights.state import PairWeightsView
from pages.shared.server import exports

QUERY = {
    "l1": "ranking,m:0.3",
    "l2": "npairs",
    "weight": "ap",
    "by": "d",
    "rival": "fixed",
    "pn": "0.25",
    "at": "0.1,0.2",
}
VIEW = "&".join(f"{k}={v}" for k, v in QUERY.items())


@pytest.fixture(scope="module")
def client():
    with TestClient(Starlette(routes=pair_weights_export.ROUTES)) as client:
        yield client


@pytest.mark.parametrize("format", ["svg", "npz", "json", "py"])
def test_every_format_of_the_shown_view(client, format):
    response = client.get(f"/api/microscope/export.{format}?{VIEW}")
    assert response.status_code == 200
    assert response.headers["content-type"] == exports.TYPES[format]
    name = f'attachment; filename="dml-pair-weights-ranking-npairs.{format}"'
    assert response.headers["content-disposition"] == name
    chosen = [losses.create("ranking", m=0.3), losses.create("npairs")]
    expected = pair_weights.weight_arrays(chosen, rival="fixed", pn=0.25, at=(0.1, 0.2))
    if format == "npz":
        with np.load(io.BytesIO(response.content)) as kept:
            for key, array in expected.items():
                np.testing.assert_array_equal(kept[key], array)
    elif format == "json":
        found = response.json()
        assert found["at_dL_dd1"] == expected["at_dL_dd1"].tolist()
        assert found["losses"][0]["hyper"] == {"m": 0.3, "m2": None}
        assert (found["rival"], found["pn"]) == ("fixed", 0.25)
    elif format == "py":
        assert "losses.create('ranking', m=0.3, m2=None)" in response.text
        drawn = "rival='fixed', pn=0.25, at=(0.1, 0.2), n=161, weight='ap', by='d', signed=True, dark=False)"
        assert f"draw_weights(chosen, {drawn}" in response.text
    else:  # pdf and png save the same figure as tests/pages/losses/fields/plane
        assert response.content == pair_weights_export.export(PairWeightsView.from_query(QUERY), format)


BAD = ("nan", "1e999", "../x", "%00", "x" * 100, "1,2,3,4", "inf", 'ranking,m:1";x')
