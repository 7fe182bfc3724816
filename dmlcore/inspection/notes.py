"""The note on a run: text of whoever looks at it, kept with the run in one small file."""

from __future__ import annotations

from dmlcore.inspection.tags_and_views import NotKept, why_not
from dmlcore.storage import atomic_files
from dmlcore.storage.listing import FileCache
from dmlcore.storage.locks import Busy, ProcessLock
from dmlcore.storage.runs import Run

FILE, LOCK = "note.txt", "note.lock"
LONGEST = 4000  # characters
_BYTES = 4 * LONGEST  # of UTF-8
_kept: FileCache[str] = FileCache(10_000)  # a search reads those of all runs


def read(run: Run) -> str:
    """The note on a run, "" where there is none; raises NotKept if the file is damaged."""
    path = run.path / FILE
    try:
        return _kept.get(str(path), lambda: atomic_files.read_bytes(path, _BYTES).decode())
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        raise NotKept(
            f"The note on this run cannot be read: the file {FILE} in its folder is damaged. Put it back from a "
            "copy, or remove it to begin anew."
        ) from None


def keep(run: Run, text: str, *, before: str) -> str:
    """Keep a text as the note on a run, instead of `before`, which its writer has seen; an empty one removes it.

    Returns the note as it is kept. Raises NotKept, also where the note is another one by now, so that of two writers
    neither loses a word.
    """
    if reason := why_not(run):
        raise NotKept(reason)
    text = "\n".join(line.rstrip() for line in text.splitlines()).strip()
    if len(text) > LONGEST:
        raise NotKept(f"A note has at most {LONGEST:,} characters, this one has {len(text):,}. Shorten it.")
    try:
        with ProcessLock(run.path / LOCK):
            if read(run) != before:
                raise NotKept("Somebody else has changed this note meanwhile. Read theirs, then write yours again.")
            _replace(run, text)
    except Busy:
        raise NotKept("Somebody else is writing this note. Try again in a moment.") from None
    except UnicodeEncodeError:
        raise NotKept("A note is plain text; this one holds half of a character.") from None
    except OSError as error:
        raise NotKept(f"It could not be kept with the run ({error.strerror or 'not writable'}).") from None
    return text


def _replace(run: Run, text: str) -> None:
    path = run.path / FILE
    if text:
        contents = text.encode()
        atomic_files.replace(path, lambda file: file.write(contents))
    else:
        path.unlink(missing_ok=True)
        atomic_files.sync_directory(run.path)
