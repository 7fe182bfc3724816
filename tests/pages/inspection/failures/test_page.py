"""The page of a failure without a browser: its default, the state in its link, and the answers of its socket."""

from __future__ import annotations

import json
import math
import re
from functools import partial
from html import unescape
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dmlcore import losses
from dmlcore.geometry import forces
from dmlcore.inspection import neighbours as learned
from dmlcore.inspection import selections
from dmlcore.inspection.failure import true_step
from dmlcore.inspection.failure.answers import Question
from dmlcore.inspection.failure.best_loss import best_loss
from dmlcore.inspection.failure.one_step import NeighbourRanks, RetrievalFailure, failures, neighbours
from dmlcore.inspection.influence import failure as influence
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import OptimiserSpec
from dmlcore.training.forks import fork_spec
from pages.inspection.failures import images
from pages.inspection.failures import service as failures_service
from pages.inspection.failures import words as failure_words
from pages.inspection.failures.address import followed
from pages.inspection.failures.influence import classes
from pages.inspection.failures.influence import images as influence_images
from pages.inspection.failures.state import RealScene, home, unit_of
from pages.inspection.failures.true_step.panel import ranks_of
from pages.inspection.failures.true_step.table import BEST, COLUMNS, best, change
from pages.shared.plane.service import as_tensors
from pages.shared.plane.state import POINTS
from pages.shared.server.wire import unpack
from pages.shared.widgets import job_button
from tests.members import in_one_case
from tests.pages.conftest import load_page
from tests.wording import says

open_page = partial(load_page, "failures")


def component_data(app: AppTest) -> dict[str, Any]:
    """Return the data that the plane receives."""
    assert not app.exception
    given = (json.loads(x.proto.json) for x in app.get("bidi_component") if x.proto.json)
    return next(x for x in given if x and "scene" in x)


def case_of(run, of: dict[str, Any]) -> RetrievalFailure:
    found = learned.read(run.embeddings())
    rows = [found.row(str(of[name])) for name in ("query", "right", "wrong")]
    return RetrievalFailure(found, *rows, on_sphere=True)


def worst(run) -> dict[str, Any]:
    """Return the data that the plane receives for the worst failure, computed without the page."""
    found = learned.read(run.embeddings())
    query = int(failures(found)[0])
    rows = query, int(neighbours(found, query, right=True)[0]), int(found.neighbours[query, 0])
    scene = RealScene.at(home(RetrievalFailure(found, *rows, on_sphere=True).triplet, run.spec))
    of = dict(zip(("query", "right", "wrong"), map(int, found.indices[list(rows)]), strict=True))
    return {"of": {"run": run.id, **of}, "scene": scene.to_json()}


def ask(given: dict[str, Any], **request: Any) -> dict[str, Any]:
    found = unpack(failures_service.answer({"scene": given["scene"], "of": given["of"], "n": 41} | request))
    return found | found["arrays"]


def test_it_opens_with_the_worst_failure_and_its_nearest_right_and_nearest_wrong_neighbour(run):
    given, found = component_data(open_page()), learned.read(run.embeddings())
    query = failures(found)[0]
    assert found.average_precision[query] == found.average_precision[found.failures].min()
    rows = [query, neighbours(found, query, right=True)[0], found.neighbours[query, 0]]
    assert given["of"] == worst(run)["of"]
    # The plane keeps the distances between the embeddings, and its first loss is the loss of the run.
    x = found.embeddings[rows].astype(float)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        drawn = math.dist(given["scene"][POINTS[i]], given["scene"][POINTS[j]])
        assert drawn == pytest.approx(np.linalg.norm(x[i] - x[j]), abs=1e-12)
    assert given["scene"]["loss"] == run.spec.loss.name == "ranking"


def test_a_class_leads_to_its_failures_alone(run):
    found, app = learned.read(run.embeddings()), open_page()
    order = failures(found)
    label = int(found.labels[order[-1]])
    mine = found.indices[order[found.labels[order] == label]].tolist()
    box = app.selectbox(key="failure_class")
    assert len(box.options) == len(np.unique(found.labels[order]))
    box.select(label).run()
    assert component_data(app)["of"]["query"] == mine[0]
    assert app.query_params["class"] in (str(label), [str(label)])
    assert f"failure 1 of {len(mine)}" in " ".join(x.value for x in app.markdown)
    app.button(key="Next failure").click().run()
    assert component_data(app)["of"]["query"] == mine[1]
    app.button(key="Previous failure").click().run()
    assert component_data(app)["of"]["query"] == mine[0]
    assert app.button(key="Previous failure").disabled
    app.selectbox(key="failure_class").select(None).run()
    assert component_data(app)["of"]["query"] == int(found.indices[order[0]])
    assert "class" not in app.query_params


def test_a_class_without_failures_is_said_and_another_query_of_the_link_gives_way_to_the_class(run):
    found = learned.read(run.embeddings())
    order = failures(found)
    app = open_page(**{"class": "999"})
    assert component_data(app)["of"] == worst(run)["of"]
    assert any("The class in the link has no failures" in x.value for x in app.warning)
    label = int(found.labels[order[0]])
    other = found.indices[order[found.labels[order] != label][0]]
    assert component_data(open_page(**{"class": str(label)}, query=str(other)))["of"] == worst(run)["of"]


TOLD = "run=r&query=1&right=2&wrong=3&loss=angular&n=0.5%2C0.25&rate=0.5&selection=s&present=1"
POINTS_HOLD = "run=r&query=1&right=2&wrong=3&loss=angular&n=0.5,0.25&rate=0.5"


@pytest.mark.parametrize(
    ("now", "then"),
    [
        # Changing the loss drops the settings of the previous loss; presentation mode set in the browser is kept.
        ("run=r&query=1&loss=facenet&m=0.75&selection=s&class=4", f"{POINTS_HOLD}&selection=s&present=1&class=4"),
        ("run=r&selection=new", f"{POINTS_HOLD}&selection=new&present=1"),
        ("run=r", f"{POINTS_HOLD}&present=1"),
        # A late message for another failure or neighbour: keep its loss and step, but not its points.
        ("run=r&query=7&loss=ratio", "run=r&query=7&loss=angular&rate=0.5&present=1"),
        ("run=r&query=1&right=8&wrong=3", "run=r&query=1&right=8&wrong=3&loss=angular&rate=0.5&present=1"),
        ("run=other&loss=ratio", "run=other&loss=ratio"),
    ],
)
def test_what_the_plane_wrote_into_the_address_is_what_the_page_goes_on_with(now, then):
    assert list(followed(dict(parse_qsl(now)), TOLD).items()) == parse_qsl(then)
    assert followed({"run": "r"}, None) == {"run": "r"}
    assert followed({}, {"query": []}) == {}


def test_a_selection_leads_through_its_failures_alone(run):
    found = learned.read(run.embeddings())
    chosen = found.indices[failures(found)[[3, 5]]]
    app = open_page(selection=selections.save(run, chosen, "lasso on the map").id)
    assert component_data(app)["of"]["query"] == chosen[0]
    app.button(key="Next failure").click().run()
    assert component_data(app)["of"]["query"] == chosen[1]
    assert app.button(key="Next failure").disabled


def test_a_link_names_the_three_the_loss_and_the_step(run):
    found = learned.read(run.embeddings())
    query = int(failures(found)[2])
    right, wrong = neighbours(found, query, right=True)[1], neighbours(found, query, right=False)[4]
    of = dict(zip(("query", "right", "wrong"), (str(i) for i in found.indices[[query, right, wrong]]), strict=True))
    given = component_data(open_page(run=run.id, loss="facenet", m="0.75", rate="0.4", by="length", n="0.5,0.25", **of))
    assert {k: str(given["of"][k]) for k in of} == of
    assert (given["scene"]["loss"], given["scene"]["hyper"]["m"]) == ("facenet", 0.75)
    assert (given["rate"], given["by"]) == (0.4, "length")
    assert given["scene"]["negative"] == [0.5, 0.25]
    assert given["home"]["negative"] != [0.5, 0.25]
    for part in ("loss=facenet", "m=0.75", "rate=0.4", "by=length", "n=0.5%2C0.25", f"wrong={of['wrong']}"):
        assert part in given["query"]


def test_a_senseless_link_opens_the_worst_failure_and_says_so(run):
    bad = "<script>alert(1)</script>"
    app = open_page(query=bad, right=bad, wrong=bad, loss=bad, rate=bad, by=bad, a=bad)
    given = component_data(app)
    assert given["of"] == worst(run)["of"]
    assert len(app.warning) == 3
    assert "<script>" not in "".join(x.value for x in app.warning)
    assert failures_service.RATES[0] <= given["rate"] <= failures_service.RATES[1]
    assert given["by"] == "rate"  # as in every link with a step size but no mode of comparison


def test_losses_are_compared_at_equal_length_unless_the_link_says_otherwise():
    assert failures_service.asked({}) == (failures_service.RATE, "length")
    assert failures_service.asked({"by": "rate"}) == (failures_service.RATE, "rate")
    assert failures_service.asked({"rate": "0.4", "by": "length"}) == (0.4, "length")
    assert failures_service.asked({"rate": "0.4"}) == (0.4, "rate")  # link from before "length" became the default


@in_one_case(name=["distance_sensitive", "location_aware"])
def test_the_socket_answers_with_forces_and_ranks_of_the_embeddings(run, name):
    given = worst(run)
    given["scene"] |= {"loss": name, "hyper": {"m": 1.5} if name == "location_aware" else {}}
    case = case_of(run, given["of"])
    found = ask(given, rate=0.3, by="length", settle=True)
    loss = losses.create(name, **given["scene"]["hyper"])
    points = [torch.from_numpy(x) for x in case.points]
    expected = np.stack([f.numpy() for f in forces(loss, *points)])
    told = found["failure"]
    assert found["raw"] == pytest.approx(float(loss.raw(*points)), rel=1e-9)
    assert told["parts"]["size"] == pytest.approx(np.linalg.norm(expected, axis=1), abs=1e-9)
    assert told["parts"]["radial"] == pytest.approx((expected * case.points).sum(1), abs=1e-6)  # float32 lengths
    in_plane = expected - np.outer(told["parts"]["off"], case.triplet.normal)
    assert np.array(found["forces"]) @ case.triplet.basis == pytest.approx(in_plane, abs=1e-9)
    assert list(told["steps"]) == losses.names()
    for other in losses.names():
        hyper = loss.hyper if other == name else run.spec.loss.parameters if other == run.spec.loss.name else {}
        (step,) = case.steps([losses.create(other, **hyper)], 0.3, length=0.3)
        after, row = step.after, told["steps"][other]
        assert (row["right"], row["wrong"], row["ap"]) == (after.right, after.wrong, after.average_precision)
        assert row["active"] == step.forces.active
    ranks = {k: NeighbourRanks(row["right"], row["wrong"], row["ap"]) for k, row in told["steps"].items()}
    judged = best_loss(case.before, ranks)
    assert told["best"]["names"] == list(judged.names)
    assert told["best"]["leaders"] == {k: list(names) for k, names in judged.leaders.items()}
    before = {"right": case.before.right, "wrong": case.before.wrong, "ap": case.before.average_precision}
    assert told["now"] == told["data"] == before


def test_a_dragged_point_is_an_embedding_of_the_plane_with_ranks_of_its_own(run):
    given = worst(run)
    case = case_of(run, given["of"])
    given["scene"]["negative"] = [3.0, 2.0]
    told = ask(given)["failure"]
    lifted = case.triplet.lift_points([given["scene"][k] for k in POINTS])
    (expected,) = case.ranks_at(lifted[None])
    assert told["moved"]
    assert (told["now"]["right"], told["now"]["wrong"]) == (expected.right, expected.wrong)
    assert told["now"]["wrong"] > told["data"]["wrong"] == 1
    assert any("off the unit sphere" in words for words in told["words"])


def test_where_no_socket_opens_the_page_answers_itself(run):
    app = open_page(socket="off")
    given = component_data(app)
    app.session_state["failure"] = {"ask": {"id": 5, "scene": given["scene"], "of": given["of"], "n": 41}}
    app.run()
    assert component_data(app)["answer"]["id"] == 5


def test_the_true_step_is_shown_where_it_was_taken(run):
    of = worst(run)["of"]
    samples = of["query"], of["right"], of["wrong"]
    path = true_step.make(run, Question(*samples, {"ranking": {"m": 0.5}, "facenet_mined": {}}))
    found, app = true_step.read(path), open_page()
    (table,) = app.dataframe
    ranking, clamped = table.value.to_dict("records")
    before, after = found["before"], found["after"]["ranking"]
    assert (ranking["loss"], ranking["settings"]) == ("Ranking", "m = 0.5")
    (free,) = case_of(run, of).steps([losses.create("ranking", m=0.5)], 0.1, length=0.1)
    told = failure_words.why("ranking", before, after, free.after, run.spec.optimiser)
    assert told in [text.value for text in app.text]
    # numeric cells, so that the table sorts by value
    assert (ranking["free"], ranking["right"], ranking["wrong"]) == (free.after.right, after["right"], after["wrong"])
    assert ranking["map_at_r"] == pytest.approx(100 * after["map_at_r"])
    assert (clamped["free"], clamped["right"], clamped["wrong"]) == (before["right"], before["right"], 1)
    assert "no force" in clamped["settings"]
    assert any("equal length δ = 0.1" in x.value for x in app.caption)
    (verdict,) = [*app.success, *app.info]
    ranks = {name: ranks_of(each) for name, each in found["after"].items()}
    lead = failure_words.verdict(best_loss(ranks_of(before), ranks), ranks_of(before), ranks)
    assert lead in verdict.value
    assert f"2 of {len(losses.names())} losses done so far" in verdict.value
    assert lead in component_data(app)["last_word"]  # the plane refers to this verdict
    by_rate = open_page(by="rate", rate="0.4")
    assert any("equal rate η = 0.4" in x.value for x in by_rate.caption)
    (far,) = case_of(run, of).steps([losses.create("ranking", m=0.5)], 0.4)
    assert by_rate.dataframe[0].value["free"][0] == far.after.right
    app.button(key="Next failure").click().run()
    assert not app.dataframe
    assert not component_data(app)["last_word"]


def test_who_made_a_failure_is_shown_where_it_was_asked_and_leads_to_a_fork(run, monkeypatch):
    of = worst(run)["of"]
    asked = []
    monkeypatch.setattr(job_button.launch, "start_job", lambda _, *question: asked.append(question))
    app = open_page()
    app.button(key="influence").click().run()
    question = Question(of["query"], of["right"], of["wrong"])
    assert [begun[:2] for begun in asked] == [("influence", question.to_json())]
    result = influence.read(influence.make(run, question))
    app = open_page()
    assert not app.exception
    harmful = [sample for sample, _ in result["harmful"]]
    share = sum(value for _, value in result["harmful"][:12]) / result["harm"]
    assert any(
        f"12 most harmful of {result['train']:,} training samples caused {share:.0%}" in x.value for x in app.info
    )
    html = " ".join(x.proto.body for x in app.get("html"))
    shown = [int(each) for each in re.findall(r'alt="training sample (\d+), class \S+, harmed', html)]
    assert shown == harmful[:12]
    link = next(x.proto for x in app.get("page_link") if "Fork without" in x.proto.label)
    size = influence.count_listed(result["train"])
    assert link.label == f"Fork without the {size} most harmful samples"
    query = dict(parse_qsl(link.query_string))
    assert (query["run"], query["step"]) == (run.id, str(min(fork_spec.fork_steps(run))))
    assert query["without"] == ",".join(map(str, harmful[:size]))
    assert classes(["a", "b", "b", "c", "d", "e"]) == "Classes: b (2), a (1), c (1) and 2 more."
    assert classes(["a"]) == "Class: a (1)."
    assert "&lt;b&gt;" in influence_images("harmed", [(3, -1.0)], -2.0, lambda sample: "<b>", "x")


def test_the_table_of_the_true_steps_writes_changes_and_marks_the_best():
    ap, rank = COLUMNS["ap"], COLUMNS["right"]
    assert change(rank, 1220.0, 72.0) == "1,220 → 72"
    assert change(ap, 12.5, 12.5001) == "12.50"
    assert change(ap, None, 3.0) == "– → 3.00"
    assert best(pd.Series([220.0, 72.0, 223.0]), 220.0, rank.better) == ["", BEST, ""]
    assert best(pd.Series([3.5, 3.6]), 5.1, ap.better) == ["", ""]  # no better than before the step
    assert best(pd.Series([7.0, 7.0]), 5.1, ap.better) == ["", ""]  # all values are equal


ONE = NeighbourRanks(58, 1, 0.0)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (
            {"ratio": NeighbourRanks(1, 283, 0.2), "ranking": NeighbourRanks(1, 75, 0.125)},
            ("Largest improvement", "Ratio", "0.0", "20.0", "58", "1", "1", "283"),
        ),
        (
            {"ratio": NeighbourRanks(9, 1, 0.0), "ranking": NeighbourRanks(8, 3, 0.0), "hoffer": ONE},
            ("2 of 3 losses tie on AP@R and the rank of P", "all but", "0.0", "58", "8–9", "1", "1–3"),
        ),
        ({"ratio": NeighbourRanks(9, 1, 0.0)}, ("With Ratio", "0.0", "58", "9", "1")),
        ({"ratio": ONE, "ranking": ONE}, ("No loss changes",)),
        ({"ratio": NeighbourRanks(60, 1, 0.0)}, ("No loss improves",)),
    ],
)
def test_the_verdict_names_a_tie_as_a_tie(after, said):
    assert says(failure_words.verdict(best_loss(ONE, after), ONE, after), *said)


@in_one_case(case=[(0.0513, 0.0349, "lose"), (0.05, 0.06, "gain"), (0.05, 0.05, "stays"), (None, 1, "")])
def test_what_the_others_pay_is_said(case):
    before, after, said = case
    told = failure_words.price(before, after)
    assert said in told
    assert bool(told) == bool(said)


@pytest.mark.parametrize(
    ("right", "d_ap", "free", "said"),
    [
        (344, 0.98, 28, ("297", "28", "nearer", "297", "344", "away", "disagree", "nearer", "1.02", "0.98", "but 47")),
        (344, 1.1, 28, ("disagree", "away", "1.02", "1.1", "and 47")),
        (296, 0.98, 28, ("agree", "1.02", "0.98", "1 fewer")),
        (297, 1.02, 28, ("stays", "297", "disagree")),
        (344, 1.02, 344, ("agree",)),
    ],
)
def test_why_the_free_and_the_true_step_differ(right, d_ap, free, said):
    before = {"right": 297, "wrong": 1, "d_ap": 1.02}
    after, ranks = {"right": right, "d_ap": d_ap, "active": True}, NeighbourRanks(free, 2, 0.5)
    told = failure_words.why("ranking", before, after, ranks, OptimiserSpec())
    assert says(told, *said), told
    assert "same amount" in told
    assert "same amount" not in failure_words.why("ranking", before, after, ranks, OptimiserSpec(name="sgd"))
    still = failure_words.why("ranking", before, before | {"active": False}, ranks, OptimiserSpec())
    assert says(still, "Ranking", "no force")


def test_a_strange_question_gets_words(run):
    of = {"run": run.id, "query": 0, "right": 1, "wrong": 2}
    changed = ({"run": "nobody"}, {"query": -1}, {"query": "0"}, {"wrong": 10**8})
    for bad in (None, [], {"run": 3}, *(of | each for each in changed)):
        assert unpack(failures_service.answer({"of": bad}))["error"]


def test_names_are_shown_literally():
    nasty = '<img src=x onerror=alert(1)> "quote" \u202e **bold** $x$'
    three = [images.Sample(1, nasty), images.Sample(2, nasty, 3), images.Sample(4, nasty, 1)]
    others = [images.Others("wrong", "Others", [(4, nasty)], [])]
    html = images.html(three, {"ap": 1.0, "an": 0.5}, others, '/x"', lambda role, index: f"?{role}={index}&a=b")
    assert "<img src=x" not in html
    assert html.count("<bdi") == 3
    assert sorted(set(re.findall(r'src="([^"]+)"', html))) == ["/x&quot;1", "/x&quot;2", "/x&quot;4"]
    assert nasty in unescape(html)


@pytest.mark.parametrize(("scale", "unit"), [(1.0, 1.0), (3000.0, 100.0), (1e-4, 0.0001)])
def test_embeddings_far_out_or_close_together_are_drawn_in_a_unit_that_is_said(tmp_path, scale, unit):
    x = np.random.default_rng(0).normal(size=(6, 5)) * scale / 2
    np.savez(tmp_path / "a.npz", embeddings=x, labels=np.arange(6) % 2, indices=np.arange(6))
    case = RetrievalFailure(learned.read(tmp_path / "a.npz"), 0, 2, 1, on_sphere=False)
    there = home(case.triplet, RunSpec())
    assert there.unit == unit == unit_of(case.triplet.points)
    scene = RealScene.of({"loss": "facenet"}, RealScene.at(there))
    assert scene.is_home
    assert scene.coordinates == pytest.approx(case.triplet.points)
    expected = losses.create("facenet").raw(*(torch.from_numpy(p) for p in case.points))
    assert float(scene.module().raw(*as_tensors(scene))) == pytest.approx(float(expected))
    told = failures_service.about(case, scene, {}, whole=True)
    assert any(f"units of {unit:g}" in words for words in told["words"]) == (unit != 1)
