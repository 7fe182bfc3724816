"""Contract of every lesson: the linter accepts it, its questions can be answered, and it can be printed."""

from __future__ import annotations

import pytest

from dmlcore.lessons import checks, text
from dmlcore.lessons.facts import FACTS
from dmlcore.lessons.lesson import lessons
from dmlcore.presets import LESSONS

ALL = {lesson.name: lesson for lesson in lessons()}


@pytest.mark.parametrize("name", ALL)
def test_the_linter_has_nothing_to_complain_of(name):
    assert checks.check_file(LESSONS / f"{name}.md") == []


@pytest.mark.parametrize("name", ALL)
def test_every_question_has_a_right_answer_and_a_wrong_one(name):
    for step in ALL[name].steps:
        question, opens = step.question, checks.shown_by(step)
        if question.kind == "do":
            assert not checks.judge(question, opens).right
            assert checks.judge(question, checks.shown_by(step, step.solved())).right
        elif question.kind == "choose":
            values = FACTS[question.fact].values
            assert [checks.judge(question, opens, value).right for value in values].count(True) == 1
        else:
            value = float(FACTS[question.fact].measure(opens).value)
            assert checks.judge(question, opens, f"{value:.3f}").right
            assert not checks.judge(question, opens, f"{value + 2 * question.within:.3f}").right


@pytest.mark.parametrize("name", ALL)
def test_every_step_says_what_to_move_and_what_follows(name):
    for step in ALL[name].steps:
        assert step.figure.control in checks.controls(checks.shown_by(step))
        assert step.question.after.endswith(".")


@pytest.mark.parametrize("name", ALL)
def test_the_text_can_be_set_for_screen_and_paper(name):
    for step in ALL[name].steps:
        assert "$" not in text.as_html(step.text)
        assert not any("*" in paragraph for paragraph in text.paragraphs(step.text))


def test_the_orders_differ():
    assert checks.check() == []
    assert len(ALL) >= 8
