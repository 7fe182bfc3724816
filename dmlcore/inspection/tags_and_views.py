"""Tags on samples and named views of pages, stored per run in one file of limited size."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.storage import atomic_files
from dmlcore.storage.locks import Busy, ProcessLock
from dmlcore.storage.runs import Run
from dmlcore.typing import Ints

FILE, LOCK = "tags_and_views.json", "tags_and_views.lock"
MOST_TAGS, MOST_TAGGED = 24, 200_000  # largest number of tags per run, and of tagged samples summed over all tags
MOST_VIEWS, LONGEST_QUERY = 48, 2000
LONGEST_NAME = 40
MOST_BYTES = 2**23


class NotKept(ValueError):
    """Error for a note, tag or view that cannot be stored; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class TagsAndViews:
    """Tags and views of a run.

    Args:
        tags: For each tag name, the indices (m,) in the data set of the tagged samples, ascending.
        views: For each view name, the URL query string that opens the view.
    """

    tags: Mapping[str, Ints] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Digest of the tags for URLs, 16 hexadecimal digits, or "" if there are no tags."""
        if not self.tags:
            return ""
        text = json.dumps({name: indices.tolist() for name, indices in self.tags.items()})
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(run: Run) -> TagsAndViews:
    """Return the tags and views of a run; empty if there are none yet.

    Raises:
        NotKept: The file is damaged.
    """
    try:
        stored = atomic_files.read_json(run.path / FILE, MOST_BYTES)
    except FileNotFoundError:
        return TagsAndViews()
    except (OSError, ValueError):
        raise _damaged() from None
    try:
        tags = {_name(name): _indices(indices) for name, indices in stored["tags"].items()}
        views = {_name(name): _query(query) for name, query in stored["views"].items()}
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        raise _damaged() from None
    if len(tags) > MOST_TAGS or len(views) > MOST_VIEWS:
        raise _damaged()
    return TagsAndViews(tags, views)


def tag(run: Run, name: str, indices: ArrayLike, *, on: bool = True) -> TagsAndViews:
    """Add a tag to samples, or remove it from them; a tag without samples is deleted.

    Args:
        run: Run that the tag belongs to.
        name: Name of the tag, 1 to LONGEST_NAME characters without commas.
        indices: Sample indices in the data set.
        on: True to add the tag, False to remove it.

    Returns:
        All tags and views after the change.

    Raises:
        NotKept: The name or an index is invalid, a limit is exceeded, or the file cannot be written.
    """
    name, chosen = _name(name), _indices(np.unique(np.asarray(indices)))

    def change(before: TagsAndViews) -> TagsAndViews:
        kept = before.tags.get(name, chosen[:0])
        after = np.union1d(kept, chosen) if on else np.setdiff1d(kept, chosen)
        tags = {**before.tags, name: after}
        if not len(after):
            del tags[name]
        if len(tags) > MOST_TAGS:
            raise NotKept(f"A run can have at most {MOST_TAGS} tags. Remove one first.")
        if sum(map(len, tags.values())) > MOST_TAGGED:
            raise NotKept(f"The tags of a run can mark at most {MOST_TAGGED:,} samples in total. Tag fewer samples.")
        return replace(before, tags=tags)

    return _change(run, change)


def keep_view(run: Run, name: str, query: str) -> TagsAndViews:
    """Store a URL query string as a view, replacing an earlier view of the same name.

    Raises:
        NotKept: The name or the query string is invalid, there are too many views, or the file cannot be written.
    """
    name, query = _name(name), _query(query)

    def change(before: TagsAndViews) -> TagsAndViews:
        views = {**before.views, name: query}
        if len(views) > MOST_VIEWS:
            raise NotKept(f"A run can have at most {MOST_VIEWS} views. Remove one first.")
        return replace(before, views=views)

    return _change(run, change)


def drop_view(run: Run, name: str) -> TagsAndViews:
    """Delete a view.

    Raises:
        NotKept: The file is damaged or cannot be written.
    """
    return _change(run, lambda before: replace(before, views={k: v for k, v in before.views.items() if k != name}))


def read_only_reason(run: Run) -> str:
    """Return the reason why notes, tags and views cannot be stored with a run, or "" if they can be stored."""
    if run.is_example:
        return "Shipped examples are read-only. Add notes, tags and views to runs of your own."
    return ""


def _change(run: Run, change: Callable[[TagsAndViews], TagsAndViews]) -> TagsAndViews:
    """Apply a change to the stored tags and views while holding the file's lock; return the result."""
    if reason := read_only_reason(run):
        raise NotKept(reason)
    try:
        with ProcessLock(run.path / LOCK):
            after = change(read(run))
            tags = {name: indices.tolist() for name, indices in after.tags.items()}
            _write(run.path / FILE, {"tags": tags, "views": dict(after.views)})
    except Busy:
        raise NotKept("Someone else is saving tags or views of this run. Try again in a moment.") from None
    except OSError as error:
        raise NotKept(f"The change could not be saved with the run ({error.strerror or 'not writable'}).") from None
    return after


def _write(path: Path, stored: Mapping[str, Any]) -> None:
    text = json.dumps(stored, separators=(",", ":")) + "\n"
    atomic_files.replace(path, lambda file: file.write(text.encode()))


def _name(name: object) -> str:
    """Return a name in its stored form; commas are refused because they separate names in links."""
    text = " ".join(name.split()) if isinstance(name, str) and len(name) < 1000 else ""
    if not text or not text.isprintable() or "," in text or len(text) > LONGEST_NAME:
        raise NotKept(f"Use a name of 1 to {LONGEST_NAME} characters without commas.")
    return text


def _query(query: object) -> str:
    if not isinstance(query, str) or len(query) > LONGEST_QUERY or not query.isprintable():
        raise NotKept(f"The link of a view can have at most {LONGEST_QUERY:,} characters.")
    return query


def _indices(values: ArrayLike) -> Ints:
    indices = np.asarray(values)
    if indices.dtype.kind not in "iu" or indices.ndim != 1 or not len(indices) or len(indices) > MOST_TAGGED:
        raise NotKept(f"Select 1 to {MOST_TAGGED:,} samples to tag.")
    if indices.min() < 0 or indices.max() >= 2**31:
        raise NotKept("Sample indices must be in 0..2^31 - 1.")
    return np.unique(indices).astype(np.int64)


def _damaged() -> NotKept:
    return NotKept(
        f"The tags and views of this run cannot be read: the file {FILE} in its folder is damaged. Put it back from a "
        "copy, or delete it to start again."
    )
