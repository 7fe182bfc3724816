"""Lessons as data: messages of the linter by file and line, measurements of figures, contents of a handout."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dmlcore.cli.main import app
from dmlcore.lessons import checks, text
from dmlcore.lessons.facts import FACTS
from dmlcore.lessons.handout import _solution, handout
from dmlcore.lessons.lesson import LessonError, read
from dmlcore.lessons.stages import STAGES
from dmlcore.presets import LESSONS
from tests.members import in_one_case

HARDNESS = LESSONS / "hardness.md"


def changed(tmp_path: Path, find: str, put: str, source: Path = HARDNESS) -> Path:
    """Write a copy of a lesson in which the first match is replaced."""
    original = source.read_text("utf-8")
    assert find in original
    path = tmp_path / source.name
    path.write_text(original.replace(find, put, 1), "utf-8")
    return path


@pytest.mark.parametrize(
    ("find", "put", "line", "remedy"),
    [
        ("+++\n", "", 1, "begin with the front matter"),
        ("minutes = 4", "minutes = 12", 4, "minutes: input should be less than or equal to 5"),
        ("minutes = 4", "minuts = 4", 4, "there is no setting minuts"),
        ("order = 2\n", "", 2, "order is missing: add a line order = ..."),
        ('title = "Easy', "title = Easy", 2, "a setting is a line"),
        ("## Too far for a gradient\n", "", 9, "this stands in no step"),
        ("```figure", "```picture", 14, "there is no block ```picture"),
        ('on = "plane"', 'on = "plain"', 14, "there is no figure plain; there are: plane"),
        ("loss=ranking", "loss=rankling", 14, "loss must be one of"),
        ("n=0.5,1.2", "n=0.5", 14, "n must be 2 numbers"),
        ("m=0.4&n=0.5,1.2", "m=0.4&mineing=1&n=0.5,1.2", 14, "has no setting mineing"),
        ("hints.easy", "hints.simple", 39, "hints: 'simple' is not one of easy, semi-hard, hard, dropped"),
        ("choose = true", 'choose = true\nhints.easy = "No."', 20, "hints belong to goal"),
        ('control = "n"', 'control = "r"', 14, "nobody can move r on this figure"),
        ('fact = "hardness"', 'fact = "hardiness"', 20, "it has: nearer (P | N: which of P and N is nearer to A)"),
        ("choose = true", 'choose = true\ngoal = "easy"', 20, "in one way"),
        ("choose = true", "above = 1", 20, "hardness is no number"),
        ("choose = true", 'goal = "simple"', 20, "goal: hardness is one of easy"),
        ("choose = true", 'goal = "easy"', 20, "opens with the goal already met"),
        ('solution = "0,0.7"', "", 39, "add solution"),
        ('solution = "0,0.7"', 'solution = "0,0.3"', 39, "the solution does not meet the goal"),
        ("Most negatives", "![bird](bird.png) Most negatives", 8, "no image in a text"),
        ("$d_{ap}+0.4$", "$d_{ap+0.4$", 8, "cannot be set"),
        ("$d_{ap}+0.4$", "$d_{ap}+0.4", 8, "a $ is open"),
        ("Most negatives are far away. With", "With", 8, ""),
    ],
)
def test_a_mistake_is_named_with_its_line_and_its_remedy(tmp_path, find, put, line, remedy):
    complaints = checks.check_file(changed(tmp_path, find, put))
    if not remedy:
        assert complaints == []
        return
    assert any(re.match(rf"\S+hardness\.md:{line}: ", c) and remedy in c for c in complaints), complaints


def test_a_text_that_nobody_reads_and_one_that_says_nothing_are_refused(tmp_path):
    path = tmp_path / "short.md"
    path.write_text(re.sub(r"## Too hard\n\n.*?```", "## Too hard\n\nShort.\n\n```", HARDNESS.read_text(), flags=re.S))
    assert "the text has 1 words" in checks.check_file(path)[0]


def test_two_lessons_of_one_order_are_told_apart(tmp_path):
    for name in ("one.md", "two.md"):
        shutil.copy(HARDNESS, tmp_path / name)
    assert "order 2 is that of one.md, too: 3 is free" in checks.check_file(tmp_path / "two.md")[0]
    assert len(checks.check(tmp_path)) == 2


def test_names_are_those_of_addresses(tmp_path):
    shutil.copy(HARDNESS, tmp_path / "My Lesson.md")
    with pytest.raises(LessonError, match="small letters"):
        read(tmp_path / "My Lesson.md")


# ---- facts are measured on the state of the figure
def measured(on: str, fact: str, **settings: str):
    return FACTS[fact].measure(STAGES[on].read(settings)).value


@pytest.mark.parametrize(
    ("n", "name"), [("0.5,1.2", "easy"), ("0,0.89", "semi-hard"), ("0,0.51", "semi-hard"), ("0,0.49", "hard")]
)
def test_hardness_is_that_of_the_thesis(n, name):
    assert measured("plane", "hardness", loss="ranking", m="0.4", n=n) == name


def test_the_push_of_the_thesis_loss_is_rho_over_d_to_the_r():
    settings = {"margin": "normalised", "mu": "0.175", "n": "0,0.6"}
    for r, expected in (("2", 0.6**-2), ("0", 1.0), ("-1", 0.6)):
        assert measured("plane", "push", r=r, **settings) == pytest.approx(expected, rel=1e-9)


@in_one_case(angle=[10.0, 60.0, 120.0, 179.0])
def test_normalisation_removes_the_sine_of_half_the_angle_from_the_ranking_force(angle):
    settings = {"loss": "ranking", "m": "2", "a": "0,0", "p": "-40,0", "n": f"{angle},0"}
    assert measured("sphere", "removed", **settings) == pytest.approx(math.sin(math.radians(angle) / 2), abs=1e-6)


@pytest.mark.parametrize("angle", [30.0, 90.0, 150.0])
def test_facenet_pushes_along_the_sphere_by_twice_the_sine(angle):
    settings = {"loss": "facenet", "m": "4", "a": "0,0", "p": "-40,0", "n": f"{angle},0"}
    assert measured("sphere", "along", **settings) == pytest.approx(2 * math.sin(math.radians(angle)), abs=1e-6)


def test_the_average_gives_an_object_the_share_of_its_pixels():
    assert measured("transport", "average on the object", map="object") == pytest.approx(0.09)
    assert measured("transport", "selected on the object", map="object", mu="1") == pytest.approx(0.09)


def test_studies_say_what_the_readme_says_of_them():
    assert measured("study", "below the inputs", study="losses-omniglot") == "none"
    shown = STAGES["study"].read({"study": "losses-cifar100"})
    assert FACTS["below the inputs"].measure(shown).words.startswith("31 of 32 end below the raw inputs")
    # the three seeds of the study as written
    gain = 100 * (np.mean([0.1089, 0.1255, 0.1224]) - np.mean([0.0384, 0.0351, 0.0405]))
    assert measured("study", "gate above average", study="omniglot-collage") == pytest.approx(gain, abs=0.02)
    assert math.isnan(measured("study", "gate above average", study="losses-digits"))


# ---- text and print
def test_underscores_of_formulas_are_no_emphasis():
    html = text.as_html("The $d_{ap}$ and *the* $d_{an}$.")
    assert html.count("<svg") == 2
    assert "<em>the</em>" in html
    assert text.paragraphs("- a $d_{ap}$\n- **b**") == ["•  a $d_{ap}$", "•  b"]


def test_a_handout_holds_every_step_its_figures_and_the_computed_answers():
    lesson = read(HARDNESS)
    page = handout(lesson, "html").decode()
    assert all(step.title in page and step.question.ask in page for step in lesson.steps)
    images = sum(2 if step.solved() else 1 for step in lesson.steps)
    assert page.count("data:image/png;base64,") == images
    assert "d(A,P) = 0.50, d(A,N) = 0.70; the loss is 0.20, above 0." in page
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", page), "one file that opens offline"
    paper = handout(lesson, "pdf")
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") == len(lesson.steps) + 1
    assert handout(lesson, "pdf") == paper
    with pytest.raises(ValueError, match="html or pdf"):
        handout(lesson, "docx")


def test_answers_on_paper_name_what_the_reader_sees_and_no_setting():
    steps = [step for path in sorted(LESSONS.glob("*.md")) for step in read(path).steps if step.question.kind == "do"]
    found = {_solution(step) for step in steps}
    assert {"N at (0, 0.8)", "N at 180°, 0°", "the loss “Ranking”", "“All losses on CIFAR-100”"} <= found
    assert {"step 20", "m₂ open, no clamp", "μ = 0.09"} <= found
    assert {words.split(" = ")[0] for words in found if " = " in words} <= {"μ", "ε", "m", "m₁", "m₂", "r", "s", "ρ"}


def test_paper_shows_all_studies_where_one_is_to_be_chosen():
    lesson = read(LESSONS / "unseen.md")
    page = handout(lesson, "html").decode()
    one, *choosing = re.findall(r"base64,([^\"]+)\"", page)
    assert len(choosing) == 4  # the question and the answer of two steps
    assert choosing[0] == choosing[2]
    assert len({one, *choosing}) == 4
    assert handout(lesson, "pdf").count(b"/Type /Page ") == 4


def test_the_command_line_lists_checks_and_prints(tmp_path):
    def dml(*words: str):
        return CliRunner().invoke(app, ["lessons", *words])

    assert "hardness" in dml("list").stdout
    assert dml("check").stdout == f"{len(list(LESSONS.glob('*.md')))} lessons: no mistakes found\n"
    wrong = changed(tmp_path, "loss=ranking", "loss=rankling")
    outcome = dml("check", str(wrong))
    assert outcome.exit_code == 1
    assert outcome.stdout.startswith(f"{wrong}:14: state: loss must be one of")
    assert "there is no lesson" in str(dml("handout", "nonsense", "--to", str(tmp_path / "a.pdf")).exception)
    assert ".html or .pdf" in str(dml("handout", "hardness", "--to", str(tmp_path / "a.docx")).exception)


def test_charges_escape_only_where_forces_do_not_vanish():
    settings = {"start": "collapsed", "per": "6", "classes": "3"}
    assert measured("charges", "alive", **settings) == "no"
    still = measured("charges", "width", step="20", **settings)
    moved = measured("charges", "width", step="20", loss="ranking", m="0.5", **settings)
    assert np.isclose(still, measured("charges", "width", **settings))
    assert moved > 2 * still


def test_a_decaying_pull_leaves_the_outlier_alone():
    settings = {"start": "outlier", "classes": "3", "per": "12", "r": "0", "m1": "60", "m2": "inf", "side": "pull"}
    ratios = []
    for s in (1.0, 0.0, -1.0):
        simulation = STAGES["charges"].read(settings | {"s": str(s)}).simulation
        x, labels = simulation.frame(0).positions.astype(float), simulation.labels
        pulls = []
        for i in range(len(x)):
            apart = x[(labels == labels[i]) & (np.arange(len(x)) != i)] - x[i]
            d = np.linalg.norm(apart, axis=1, keepdims=True)
            pulls.append(np.linalg.norm((apart * d ** (s - 1)).sum(0)))
        ratios.append(pulls[0] / np.median(pulls))  # point 0 is the outlier
        assert measured("charges", "outlier force", s=str(s), **settings) == pytest.approx(ratios[-1], rel=1e-3)
    assert ratios[0] > 5 > ratios[1] > 1 > ratios[2]
