"""The note on a run: stored with it, bounded, not lost to a concurrent writer, refused with a readable message."""

import os

import pytest

from dmlcore.inspection import notes
from dmlcore.inspection.tags_and_views import NotKept
from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files
from dmlcore.storage.runs import EXAMPLE, Run, RunStore


@pytest.fixture
def run(tmp_path):
    return RunStore(tmp_path).create(RunSpec())


def test_a_note_is_written_changed_and_removed(run):
    assert notes.read(run) == ""
    assert notes.keep(run, "  läuft davon \r\n\r\nα = 0.1 👩‍🔬 \n", before="") == "läuft davon\n\nα = 0.1 👩‍🔬"
    assert notes.read(Run(run.path)) == "läuft davon\n\nα = 0.1 👩‍🔬"
    notes.keep(run, "shorter", before=notes.read(run))
    assert notes.read(run) == "shorter"
    notes.keep(run, " \n ", before="shorter")
    assert notes.read(run) == ""
    assert not (run.path / notes.FILE).exists()


def test_of_two_writers_neither_loses_a_word(run):
    notes.keep(run, "hers", before="")
    with pytest.raises(NotKept, match="Someone else"):
        notes.keep(run, "his", before="")
    assert notes.read(run) == "hers"


def test_a_note_has_an_end_and_whole_characters(run):
    with pytest.raises(NotKept, match=r"4,001 characters.* at most 4,000"):
        notes.keep(run, "x" * 4001, before="")
    with pytest.raises(NotKept, match="invalid character"):
        notes.keep(run, "\ud800", before="")
    assert not (run.path / notes.FILE).exists()
    longest = "🦩" * notes.LONGEST
    assert notes.keep(run, longest, before="") == longest
    assert notes.read(run) == longest


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"x" * 20_000, None])
def test_a_damaged_note_is_said_and_never_written_over(run, damage):
    path = run.path / notes.FILE
    os.mkfifo(path) if damage is None else path.write_bytes(damage)
    for attempt in (lambda: notes.read(run), lambda: notes.keep(run, "new", before="")):
        with pytest.raises(NotKept, match="damaged"):
            attempt()
    assert damage is None or path.read_bytes() == damage


def test_a_full_disk_leaves_the_note_as_it_was(run, monkeypatch):
    notes.keep(run, "first", before="")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    with pytest.raises(NotKept, match="No space left"):
        notes.keep(run, "second", before="first")
    monkeypatch.undo()
    assert notes.read(run) == "first"
    assert sorted(path.name for path in run.path.glob("*note*")) == [notes.LOCK, notes.FILE]


def test_the_example_takes_no_note(tmp_path):
    with pytest.raises(NotKept, match="example"):
        notes.keep(Run(tmp_path / EXAMPLE), "mine", before="")
