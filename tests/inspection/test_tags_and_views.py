"""Tags and views: stored with the run, bounded, not lost to a concurrent writer, refused with a readable message."""

import threading

import pytest

from dmlcore.inspection import tags_and_views
from dmlcore.inspection.tags_and_views import NotKept
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import EXAMPLE, Run, RunStore


@pytest.fixture
def run(tmp_path):
    return RunStore(tmp_path).create(RunSpec())


def test_a_tag_is_given_and_taken_away(run):
    assert tags_and_views.read(run).id == ""
    tags_and_views.tag(run, "  two  heads ", [7, 3, 3])
    first = tags_and_views.read(run)
    assert {name: found.tolist() for name, found in first.tags.items()} == {"two heads": [3, 7]}
    tags_and_views.tag(run, "two heads", [5])
    assert tags_and_views.read(run).tags["two heads"].tolist() == [3, 5, 7]
    assert tags_and_views.read(run).id != first.id
    tags_and_views.tag(run, "two heads", [3, 7], on=False)
    assert tags_and_views.tag(run, "two heads", [5], on=False).tags == {}
    assert tags_and_views.read(run).tags == {}


def test_a_view_is_replaced_and_dropped_and_tags_stay(run):
    tags_and_views.tag(run, "odd", [1])
    tags_and_views.keep_view(run, "mine", "colour=right")
    tags_and_views.keep_view(run, "mine", "colour=rank&rank=4")
    assert dict(tags_and_views.read(run).views) == {"mine": "colour=rank&rank=4"}
    tags_and_views.drop_view(run, "mine")
    assert tags_and_views.read(run).views == {}
    assert list(tags_and_views.read(run).tags) == ["odd"]


@pytest.mark.parametrize("name", ["", " ", "a,b", "x" * 41, "a\0b", "x" * 5000, None, 5])
def test_what_is_no_name_is_refused(run, name):
    for change in (lambda: tags_and_views.tag(run, name, [1]), lambda: tags_and_views.keep_view(run, name, "")):
        with pytest.raises(NotKept, match="name of 1 to"):
            change()
    assert not (run.path / tags_and_views.FILE).exists()


@pytest.mark.parametrize("indices", [[], [-1], [0.5], ["a"], [2**31]])
def test_what_are_no_samples_is_refused(run, indices):
    with pytest.raises(NotKept, match=r"(?i)sample"):
        tags_and_views.tag(run, "odd", indices)


def test_there_is_an_end_to_tags_marks_and_views(run, monkeypatch):
    monkeypatch.setattr(tags_and_views, "MOST_TAGS", 2)
    monkeypatch.setattr(tags_and_views, "MOST_TAGGED", 5)
    monkeypatch.setattr(tags_and_views, "MOST_VIEWS", 1)
    tags_and_views.tag(run, "one", [1, 2])
    tags_and_views.tag(run, "two", [1])
    with pytest.raises(NotKept, match="2 tags"):
        tags_and_views.tag(run, "three", [1])
    with pytest.raises(NotKept, match="at most 5 samples"):
        tags_and_views.tag(run, "two", [2, 3, 4])
    tags_and_views.keep_view(run, "mine", "")
    with pytest.raises(NotKept, match="1 views"):
        tags_and_views.keep_view(run, "yours", "")
    with pytest.raises(NotKept, match="2,000 characters"):
        tags_and_views.keep_view(run, "mine", "x" * 2001)
    assert [found.tolist() for found in tags_and_views.read(run).tags.values()] == [[1, 2], [1]]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"tags": {}}', '{"tags": {"a": [1.5]}, "views": {}}', '{"tags": {"a": [-1]}, "views": {}}',
     '{"tags": [], "views": {}}', '{"tags": {}, "views": {"a": 5}}', '{"tags": {"a,b": [1]}, "views": {}}',
     '{"tags": {"a": [1e999]}, "views": {}}', "[" * 100_000],
)  # fmt: skip
def test_a_damaged_file_is_said_and_never_written_over(run, text):
    path = run.path / tags_and_views.FILE
    path.write_text(text)
    with pytest.raises(NotKept, match="damaged"):
        tags_and_views.read(run)
    with pytest.raises(NotKept, match="damaged"):
        tags_and_views.tag(run, "odd", [1])
    assert path.read_text() == text


def test_the_example_is_not_written_to(run):
    example = Run(run.path.rename(run.path.with_name(EXAMPLE)))
    with pytest.raises(NotKept, match="example"):
        tags_and_views.tag(example, "odd", [1])
    assert not (example.path / tags_and_views.FILE).exists()
    assert tags_and_views.read_only_reason(example)


def test_a_run_that_is_gone_is_said(run):
    for path in run.path.iterdir():
        path.unlink() if path.is_file() else path.rmdir()
    run.path.rmdir()
    with pytest.raises(NotKept, match="could not be saved"):
        tags_and_views.tag(run, "odd", [1])


def test_of_two_visitors_neither_loses_a_mark(run):
    def mark(first):
        for index in range(first, first + 8):
            tags_and_views.tag(run, "odd", [index])

    visitors = [threading.Thread(target=mark, args=(first,)) for first in (0, 100)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert tags_and_views.read(run).tags["odd"].tolist() == [*range(8), *range(100, 108)]
