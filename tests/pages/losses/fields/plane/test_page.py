"""The fields page without a browser: the component receives the scene of the link and the properties of its loss."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from streamlit.testing.v1 import AppTest

from dmlcore import losses
from pages.shared.server.schema import schema
from tests.members import in_one_case
from tests.pages.conftest import load_page

open_page = partial(load_page, "fields")


def component_data(app: AppTest) -> dict[str, Any]:
    (stage,) = app.get("bidi_component")
    return json.loads(stage.proto.json)


@in_one_case(name=losses.names()[::6])
def test_each_loss_opens_and_is_explained(name):
    app = open_page(loss=name, n="0.25,0.5")
    assert not app.exception
    assert component_data(app)["scene"]["loss"] == name
    assert component_data(app)["scene"]["negative"] == [0.25, 0.5]
    assert component_data(app)["idle"] is False
    told, formula = json.loads(schema())["losses"][name], losses.formula(name)
    assert (told["title"], told["sentence"], told["source"]) == (formula.title, formula.sentence, formula.source)
    assert told["latex"].startswith("E = ")
    assert [c["name"] for c in told["controls"]] == list(formula.sliders)


def test_a_first_visit_may_move_and_hidden_controls_are_named():
    assert component_data(open_page())["idle"] is True
    assert component_data(open_page(hide="m1,figures"))["hide"] == ["m1", "figures"]
