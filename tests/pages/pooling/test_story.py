"""The four steps of Pooling: the text of each step below its figure, and the state that its link passes on."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest

from dmlcore.inspection.local.weight_maps import WeightMaps
from dmlcore.pooling.analysis.red_blue import informative
from pages.pooling.collage import state as collage_state
from pages.pooling.collage.canvas import WeightsRow, verdict
from pages.pooling.gap_vs_gsp.state import PoolingStudy
from pages.pooling.prototypes import service as prototypes_service
from pages.pooling.prototypes.state import PrototypesView
from pages.pooling.transport import service as transport_service
from pages.pooling.transport.state import PRESETS, TransportState
from pages.shared.server.wire import unpack
from pages.shared.state import spec_link
from pages.shared.words.numbers import unbroken
from tests.members import in_one_case
from tests.pages.conftest import load_page
from tests.wording import says


def of_image(**view):
    return unpack(prototypes_service.answer({"view": PrototypesView(**view).to_json()}))


def of_map(state):
    return unpack(transport_service.answer({"state": state.to_json(), "rest": True}))


# ---- Prototypes
def test_an_average_is_told_beside_what_two_images_differ_by_and_too_few_cells_as_such():
    found = of_image(prototypes=48)
    pooled = found["arrays"]["pooled"].astype(np.float64)
    apart = np.linalg.norm(pooled[:, None] - pooled, axis=-1)[np.triu_indices(len(pooled), 1)]
    noise = float(np.sqrt((apart**2).mean()))
    shared = 100 * found["overlaps"]["histogram_intersection"]
    assert says(found["verdict"], f"{found['image']['error']:.3f}", f"{noise:.3f}", f"{shared:.0f} %")
    few = of_image(prototypes=4)
    assert few["image"]["error"] > 0.1
    assert "too coarse" in few["verdict"]


@pytest.mark.parametrize("picture", [(0, 0), (1, 5), (7, 3)])
def test_the_gate_gets_the_features_of_the_image_and_prototypes_of_its_class(picture):
    found = of_image(prototypes=48, picture=picture)
    state = TransportState.from_query(dict(parse_qsl(found["next"])))
    assert state.link() == found["next"]
    # The colours of the gate keep the distances between the features up to a scale: the plane is rotated and scaled.
    rows = ((np.arange(10) + 0.5) * 6 / 10).astype(int)
    own = found["arrays"]["own"].reshape(6, 6, 2)[rows][:, rows].reshape(-1, 2)
    centres = found["arrays"]["prototypes"]
    between = np.linalg.norm(own[:, None] - own, axis=-1)
    colours = state.features()
    brought = np.linalg.norm(colours[:, None] - colours, axis=-1)
    factor = brought.sum() / between.sum()
    assert np.abs(brought - factor * between).max() < 0.025  # colours are rounded to multiples of 1/160
    # The prototypes are cells of this plane, on the side of the cell that is most informative about the class.
    gaps = np.linalg.norm(state.centres()[:, None] - colours, axis=-1)
    given = factor * np.linalg.norm(centres[:, None] - own, axis=-1)
    nearest = [int(np.abs(given - gap).max(1).argmin()) for gap in gaps]
    assert all(np.abs(given[i] - gap).max() < 0.025 for i, gap in zip(nearest, gaps, strict=True))
    assert 1 <= len(set(nearest)) == len(nearest) <= 4
    assert informative(state.centres()).all()
    shares = {c: of_image(prototypes=48, shown=(c,))["arrays"]["share"][0] for c in range(10)}
    surplus = shares[picture[0]] - np.mean(list(shares.values()), axis=0)
    assert nearest[0] == surplus.argmax()
    assert (surplus[nearest] > 0).all()
    # mu is half of the share of features on that side.
    assert state.mu == pytest.approx(max(informative(colours).mean() / 2, 0.05), abs=0.006)


@in_one_case(label=range(10))
def test_the_gate_of_an_image_prefers_what_tells_its_class(label):
    state = TransportState.from_query(dict(parse_qsl(of_image(picture=(label, 3))["next"])))
    found = of_map(state)
    assert found["shares"][1] > 1.5 * found["shares"][2]
    assert re.match("The gate (leaves the background out|reduces the background)", found["verdict"])


# ---- Transport
def test_what_a_gate_does_is_read_off_its_weights():
    figure = of_map(TransportState())
    even = informative(TransportState().features()).mean()
    assert says(
        figure["verdict"], "leaves the background out", f"{100 * figure['shares'][1]:.1f} %", f"{100 * even:.1f} %"
    )
    said = {preset.title: of_map(preset.state(TransportState))["verdict"] for preset in PRESETS}
    assert "hardly anything" in said["μ = 1 keeps everything"]
    assert "hardly anything" in said["ε → 0 gives average pooling"]
    assert "nothing to leave out" in said["All pixels equal"]
    assert "prefers the background" in of_map(TransportState(prototypes=(0,), epsilon=20.0))["verdict"]
    assert "reduces the background" in of_map(TransportState(epsilon=1.0))["verdict"]


def test_the_training_gets_the_gate():
    study = PoolingStudy.from_query(dict(parse_qsl(of_map(TransportState(mu=0.35, epsilon=12.0))["next"])))
    assert study == replace(PoolingStudy(), classes=4, mu=0.35, epsilon=12.0)
    ends = PoolingStudy.from_query(dict(parse_qsl(of_map(TransportState(mu=0.01, epsilon=450.0))["next"])))
    assert (ends.mu, ends.epsilon) == (0.05, 200.0)


# ---- Collage
def row(name, shares, weights=None):
    count = len(shares)
    weights = np.full((count, 2, 2), 0.25, np.float32) if weights is None else weights
    tile = np.zeros(count, np.int64)
    return WeightsRow(name, "", WeightMaps(np.arange(count), weights, np.array(shares, np.float32), tile))


def test_who_looks_at_the_tile_is_told_from_noise():
    even, clear, noisy = row("GAP", [0.25] * 4), row("GSP", [0.5, 0.4, 0.5, 0.4]), row("DeLF", [0.0, 1.0, 0.1, 0.3])
    shares = [unbroken(part) for part in ("25.0 ± 0.0 %", "45.0 ± 2.9 %", "35.0 ± 22.5 %", "4 images", "25 %")]
    assert says(verdict([even, clear, noisy], 2), "GSP looks at", *shares)
    assert verdict([even, noisy], 2).startswith("No pooling looks at")
    assert verdict([clear, row("X", [0.4, 0.41])], 2).startswith("GSP and X look at")
    one = np.zeros((2, 2, 2), np.float32)
    one[:, 0, 0] = 1  # without tiles, the verdict is the number of positions
    assert says(verdict([row("GAP", [np.nan] * 2), row("peak", [np.nan] * 2, one)], 0), "4", "GAP 4", "peak 1.")


@in_one_case(name=collage_state.STUDIES.values())
def test_train_gets_the_gate_of_the_address(name):
    def gate(query):
        spec = spec_link.linked(dict(parse_qsl(collage_state.onward(name, query))))
        assert (spec.pooling.name, spec.data.name) == ("gsp", collage_state.data_of(name))
        return spec.pooling.parameters["mu"], spec.pooling.parameters["epsilon"]

    assert gate({"mu": "0.4", "epsilon": "7"}) == (0.4, 7)
    assert gate({"mu": "x"}) == (0.25, 20)


@pytest.mark.parametrize(
    ("query", "tiles"), [({}, "glyphs"), ({"tiles": "omniglot"}, "omniglot"), ({"tiles": "x"}, "glyphs")]
)
def test_collage_shows_maps_to_whoever_has_no_data(monkeypatch, tmp_path, query, tiles):
    monkeypatch.setattr(collage_state.data, "available", lambda name, root=None: tmp_path if "glyph" in name else None)
    app = load_page("collage", **query)
    assert not app.exception
    begun = {button.key for button in app.button}
    assert [f"start-{study}" in begun for name, study in collage_state.STUDIES.items()] == [
        name == tiles for name in collage_state.STUDIES
    ]
