"""The report contains the numbers and images of the run, and no markup from names."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from dmlcore.inspection import export, report
from tests.inspection import hostile


class Page(HTMLParser):
    """Collect elements, texts and attributes of a page as a browser would parse it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.inside: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self.open:
            self.inside.setdefault(self.open[-1], []).append(data)


@pytest.fixture
def made(tmp_path):
    return hostile.make(tmp_path)


@pytest.fixture
def text(made):
    run, _, table = made
    return report.html(table, report.newest_map(run), ["The run leaves <b>its</b> protocol."])


def test_names_are_text_and_nothing_is_fetched(text):
    page = Page(text)
    assert page.open == []
    allowed = {
        *("html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "dl", "dt", "dd", "div", "p"),
        *("section", "table", "tr", "th", "td", "label", "select", "option", "span", "button", "canvas", "noscript"),
        *("script", "figure", "figcaption", "img", "small", "bdi", "details", "summary", "pre", "footer"),
    }
    assert {tag for tag, _ in page.tags} <= allowed
    for tag, attributes in page.tags:
        assert not {key for key in attributes if key.startswith("on")}
        assert "style" not in attributes, "the policy must forbid it"
        assert not {"href", "srcset", "action", "data"} & set(attributes)
        if tag == "img":
            assert attributes["src"].startswith("data:image/")
        if tag == "script":
            assert "src" not in attributes
    shown = set(page.inside["bdi"])
    assert set(hostile.NAMES) <= shown, "every name is literal and isolated from its surroundings"
    assert "The run leaves <b>its</b> protocol." in shown


def test_the_policy_allows_what_is_in_the_file_alone(text):
    page = Page(text)
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    digest = lambda body: f"'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'"  # noqa: E731
    assert rules["style-src"] == digest("".join(page.inside["style"]))
    assert rules["script-src"] == digest(page.inside["script"][-1])
    assert "unsafe" not in policy


def test_the_map_carries_points_classes_and_images(made, text):
    _, _, table = made
    content = json.loads(re.search(r'id="content">(.*?)</script>', text)[1])
    raw = lambda key, kind: np.frombuffer(base64.b64decode(content[key]), kind)  # noqa: E731
    assert content["names"] == list(hostile.NAMES)
    assert raw("classes", "<u2").tolist() == table.labels.tolist()
    assert raw("indices", "<i4").tolist() == table.indices.tolist()
    assert raw("right", "u1").tolist() == table.learned.right[:, 0].tolist()
    points, placed = table.learned.embeddings[:, :2], raw("points", "<u2").reshape(-1, 2)
    for axis in (0, 1):
        assert np.corrcoef(points[:, axis], placed[:, axis])[0, 1] > 0.999999
    assert raw("illustrated", "<i4").tolist() == list(range(36))
    assert len(content["sheets"]) == 1
    assert "fewer" not in text


def test_the_gallery_shows_the_worst_failures_first(made, text):
    _, _, table = made
    learned = table.learned
    failures = np.flatnonzero(~learned.right[:, 0])
    worst = failures[np.argsort(learned.average_precision[failures], kind="stable")]
    section = text[text.index("Worst failures") : text.index("Best queries")]
    shown = [int(index) for index in re.findall(r"sample (\d+)</small>", section)]
    assert len(shown) == min(report.WORST, len(failures))
    precisions = learned.average_precision[np.array(shown) - 36]
    assert np.allclose(precisions, learned.average_precision[worst[: len(shown)]])
    first = section.split("<div class='row'>")[1]
    row = shown[0] - 36
    marks = re.findall(r"<figure class='(right|wrong)'>", first)
    assert marks == ["right" if right else "wrong" for right in learned.right[row, : report.NEIGHBOURS]]
    distances = [f"{d:.3f}" for d in learned.distances[row, : report.NEIGHBOURS]]
    assert distances == re.findall(r"<small>(\d\.\d{3})<", first)


def test_scores_of_other_weights_are_not_shown(made):
    run, _, table = made
    row = {"kind": "scores", "of": "trained", "step": 1, "map_at_r": 0.1234, "recall_at": {"1": 0.5}, "weights": "xx"}
    row |= {"queries": 36}
    (run.path / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    assert "12.3 %" not in report.html(table)
    assert f"{100 * table.learned.map_at_r:.1f} %" in report.html(table)
    (run.path / "metrics.jsonl").write_text(json.dumps(row | {"weights": "ab" * 32}) + "\n")
    assert "12.3 %" in report.html(table)


def test_the_images_of_many_samples_are_bounded(made, monkeypatch):
    run, _, table = made
    monkeypatch.setattr(report, "MOST_THUMBNAILS", 10)
    text = report.html(table, report.newest_map(run))
    assert "9 of 36 samples have an image" in text
    stated = float(re.search(r"<footer>([\d.]+) MB", text)[1])
    assert stated == pytest.approx(len(text.encode()) / 1e6, abs=0.06)


def test_without_the_data_set_and_without_a_map_it_is_still_a_report(made):
    run, _, table = made
    text = report.html(export.table(run, run.embeddings(), table.learned))
    page = Page(text)
    assert "img" not in {tag for tag, _ in page.tags}
    assert "class 3" in page.inside["bdi"]
    assert 'id="map"' not in text
