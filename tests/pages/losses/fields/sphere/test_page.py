"""The circle-and-sphere page without a browser: its statement and its table agree with the library."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from dmlcore import losses
from dmlcore.loss_analysis.normalised import normalisation
from pages.losses.fields.sphere import service
from pages.losses.fields.sphere.state import FIRST, SphereScene
from pages.losses.fields.sphere.words import row, statement
from pages.shared.plane.state import POINTS
from tests.members import in_one_case
from tests.pages.conftest import load_page
from tests.wording import says

open_page = partial(load_page, "sphere")


def test_the_page_states_its_loss_and_all_others():
    app = open_page(loss="moving")
    assert not app.exception
    assert says(app.subheader[0].value, "normalisation", "moving in the right direction")
    assert any("no margin disables it" in x.value for x in app.markdown)
    table = app.table[0].value
    assert len(table) == len(losses.names())


def test_a_committed_loss_is_stated():
    app = open_page()
    app.session_state["sphere"] = {"scene": {"loss": "ranking", "hyper": {"m": 2.5}}}
    app.run()
    assert app.subheader[0].value.endswith("on the ranking loss")
    assert any("no triplet is ever satisfied" in x.value for x in app.markdown)


@in_one_case(name=losses.names())
def test_statements_hold_their_numbers(name):
    loss = losses.create(name)
    found = normalisation(loss)
    text = " ".join(statement(loss, found))
    assert f"{found.radial_share:.0%}" in text
    cells = row(SphereScene(), name)
    if found.margin_off is not None and math.isfinite(found.margin_off):
        assert f"{found.margin_off:.5g}" in text
        assert f"{found.margin_off:.4g}".replace("-", "−") in cells["Lower clamp off from"]
    assert ("without its margin" in text) == (loss.formula.margin is not None)
    assert ("vanish" in text) == (name in ("moving", "npairs", "location_aware"))
    assert ("Form on the sphere" in text) == bool(cells["Form on the sphere"])


def test_the_verdict_on_a_margin_turns_where_the_clamp_does():
    for m, word in ((1.99, "can still be satisfied"), (2.0, "no triplet is ever satisfied")):
        loss = losses.create("ranking", m=m)
        assert word in " ".join(statement(loss, normalisation(loss)))


def test_the_upper_clamp_is_reached_or_not():
    for m2, word in ((2.05, "drops the hardest"), (2.2, "is never reached")):
        loss = losses.create("ranking", m=0.1, m2=m2)
        assert word in " ".join(statement(loss, normalisation(loss)))


def test_a_bare_address_opens_with_the_whole_triplet_in_front_also_while_it_swings():
    scene = FIRST.state(SphereScene)
    for swing in (-20.0, 0.0, 20.0):  # degrees: SWING of assets/src/losses/fields/sphere/sphere.ts
        eye = service.unit(replace(scene, eye=(scene.eye[0] + swing, scene.eye[1])), "eye")
        for name in POINTS:
            assert float(eye @ service.unit(scene, name)) > math.cos(math.radians(65)), (name, swing)
