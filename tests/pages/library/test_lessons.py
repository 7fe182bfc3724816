"""The lessons page: every step opens, and answers are evaluated on its figure, which it reads as the linter does."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dmlcore.lessons.checks import shown_by
from dmlcore.lessons.facts import FACTS, facts_of
from pages.lessons import export, service
from pages.lessons.figure.panel import hidden
from pages.lessons.shown import STATE, shown
from pages.lessons.state import LessonAnswer, figure_state, known, place_of
from pages.shared.state import untrusted
from tests.members import in_one_case
from tests.pages.conftest import load_page


def place(name: str, number: int):
    return place_of({"lesson": name, "step": str(number)})


PLACES = [place(name, i + 1) for name, lesson in known().items() for i in range(len(lesson.steps))]


@in_one_case(here=PLACES)
def test_the_page_reads_a_figure_as_the_linter_does(here):
    for settings in (here.step.figure.settings, here.step.solved() or {}):
        if settings:
            with untrusted.misreading() as misread:
                on_page, in_library = shown(here, settings), shown_by(here.step, settings)
            assert not misread
            for fact in facts_of(type(in_library)):
                measure = FACTS[fact].measure
                assert measure(on_page).words == measure(in_library).words, fact


@pytest.mark.parametrize("name", known())
def test_each_lesson_opens(name):
    app = load_page("lessons", lesson=name)
    assert not app.exception
    assert app.title[0].value == known()[name].title
    assert app.subheader[0].value == f"1. {known()[name].steps[0].title}"


def test_the_list_opens_and_an_unknown_lesson_is_told():
    assert load_page("lessons").title[0].value == "Lessons"
    assert "does not exist" in load_page("lessons", lesson="alchemy").caption[0].value


@in_one_case(case=[("", 1), ("3", 3), ("99", 4), ("-1", 1), ("x", 1)])
def test_an_address_names_a_step_or_the_nearest(case):
    step, number = case
    assert place_of({"lesson": "triplet", "step": step}).number == number


def answered(name: str, number: int, given: str = "", **settings: str):
    here = place(name, number)
    message = {"id": 7, "given": given, "query": "?" + urlencode(here.to_query() | settings)}
    answer = LessonAnswer.of(message, here)
    return service.verdict(answer, shown(here, answer.query))


def test_an_answer_is_judged_on_the_figure_as_it_stands():
    assert not answered("hardness", 2)["right"]  # in its initial state
    ranked = {"loss": "ranking", "m": "0.4"}
    assert "too far" in answered("hardness", 2, n="0,1.3", **ranked)["words"]
    assert "too near" in answered("hardness", 2, n="0,0.3", **ranked)["words"]
    law = {"n": "0,0.6", "margin": "normalised", "mu": "0.175"}
    assert "too strong" in answered("laws", 2, r="2", **law)["words"]
    assert "too weak" in answered("laws", 2, r="-1", **law)["words"]
    moved = answered("hardness", 2, loss="ranking", m="0.4", n="0,0.7")
    assert moved == {
        "id": 7,
        "right": True,
        "measured": "d(A,P) = 0.50, d(A,N) = 0.70; the loss is 0.20, above 0.",
        "words": "FaceNet (Schroff et al. 2015) was trained on such negatives.",
    }
    assert answered("hardness", 1, "easy")["right"]
    # The same answer is wrong after N was dragged closer.
    assert not answered("hardness", 1, "easy", loss="ranking", m="0.4", n="0,0.7")["right"]
    assert answered("hardness", 1, "nonsense")["words"] == "Choose one of the answers."
    assert answered("normalisation", 1, "much")["words"] == "Write a number."


def test_the_time_of_charges_is_called_frame_in_a_lesson():
    here = place("collapse", 5)
    query = figure_state(here, {"lesson": "collapse", "step": "5", "frame": "2", "start": "moons"})
    assert query == {"step": "2", "start": "moons"}
    assert shown(here, query).step == 2


@in_one_case(
    message=[
        None,
        7,
        {},
        {"query": 3, "given": ""},
        {"query": "?lesson=triplet&step=1", "given": ""},  # answer to another step
        {"query": "?lesson=hardness&step=2" + "&a=1" * 2000, "given": ""},
    ]
)
def test_a_message_that_is_no_answer_is_passed_over(message):
    assert LessonAnswer.of(message, place("hardness", 2)) is None


@in_one_case(here=[here for here in PLACES if here.step.figure.on in STATE])  # other figures have one control
def test_one_control_is_left(here):
    control = here.step.figure.control
    assert control not in hidden(here)
    assert ("loss" in hidden(here)) == (control in ("n", "p", "a", "step"))


def test_handouts_are_files_to_save():
    client = TestClient(Starlette(routes=export.ROUTES))
    answer = client.get("/api/lessons/handout.html?lesson=triplet")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="dml-lesson-triplet.html"'
    assert "What a triplet is" in answer.text
    assert client.get("/api/lessons/handout.html?lesson=../secret").status_code == 404
    assert client.get("/api/lessons/handout.docx?lesson=triplet").status_code == 404
