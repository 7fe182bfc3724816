"""Note on a run: one text per run, written by users and stored in a small file in the run directory."""

from __future__ import annotations

from dmlcore.inspection.tags_and_views import NotKept, read_only_reason
from dmlcore.storage import atomic_files
from dmlcore.storage.listing import FileCache
from dmlcore.storage.locks import Busy, ProcessLock
from dmlcore.storage.runs import Run

FILE, LOCK = "note.txt", "note.lock"
LONGEST = 4000  # largest length of a note in characters
_BYTES = 4 * LONGEST  # largest size of a note in bytes of UTF-8 text
_kept: FileCache[str] = FileCache(10_000)  # cached because a search over runs reads the notes of all of them


def read(run: Run) -> str:
    """Return the note on a run, or "" if it has none.

    Raises:
        NotKept: The file is damaged.
    """
    path = run.path / FILE
    try:
        return _kept.get(str(path), lambda: atomic_files.read_bytes(path, _BYTES).decode())
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        raise NotKept(
            f"The note on this run cannot be read: the file {FILE} in its folder is damaged. Put it back from a "
            "copy, or delete it to start again."
        ) from None


def keep(run: Run, text: str, *, before: str) -> str:
    """Replace the note on a run; an empty text removes it.

    Args:
        run: Run that the note belongs to.
        text: New note, at most LONGEST characters; spaces at line ends are removed.
        before: Note that the author has seen before editing. If the stored note differs from it, nothing is
            overwritten.

    Returns:
        The note as stored.

    Raises:
        NotKept: The stored note differs from `before`, the text is too long, or the run or the file is read-only.
    """
    if reason := read_only_reason(run):
        raise NotKept(reason)
    text = "\n".join(line.rstrip() for line in text.splitlines()).strip()
    if len(text) > LONGEST:
        raise NotKept(f"The note has {len(text):,} characters. Shorten it to at most {LONGEST:,}.")
    try:
        with ProcessLock(run.path / LOCK):
            if read(run) != before:
                raise NotKept("Someone else has changed this note. Read the new text, then edit yours again.")
            _replace(run, text)
    except Busy:
        raise NotKept("Someone else is saving this note. Try again in a moment.") from None
    except UnicodeEncodeError:
        raise NotKept("The note contains an invalid character. Remove it and save again.") from None
    except OSError as error:
        raise NotKept(f"The note could not be saved with the run ({error.strerror or 'not writable'}).") from None
    return text


def _replace(run: Run, text: str) -> None:
    path = run.path / FILE
    if text:
        contents = text.encode()
        atomic_files.replace(path, lambda file: file.write(contents))
    else:
        path.unlink(missing_ok=True)
        atomic_files.sync_directory(run.path)
