"""What people note about a run's samples: tags, and named views of a page, kept with the run in one bounded file."""

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
MOST_TAGS, MOST_TAGGED = 24, 200_000  # tags of a run, and marks of all of them together
MOST_VIEWS, LONGEST_QUERY = 48, 2000
LONGEST_NAME = 40
MOST_BYTES = 2**23


class NotKept(ValueError):
    """It cannot be noted; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class TagsAndViews:
    """Tags by name, each the samples (m,) of the data set that carry it, ascending; views by name, each a link's query.

    id: changes with the tags, for addresses; "" where there are none.
    """

    tags: Mapping[str, Ints] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """16 hexadecimal digits, or ""."""
        if not self.tags:
            return ""
        text = json.dumps({name: indices.tolist() for name, indices in self.tags.items()})
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(run: Run) -> TagsAndViews:
    """The tags and views of a run, none where there are none yet; raises NotKept if the file is damaged."""
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
    """Give samples (indices in the data set) a tag, or take it from them; a tag of no sample is gone.

    Raises NotKept.
    """
    name, chosen = _name(name), _indices(np.unique(np.asarray(indices)))

    def change(before: TagsAndViews) -> TagsAndViews:
        kept = before.tags.get(name, chosen[:0])
        after = np.union1d(kept, chosen) if on else np.setdiff1d(kept, chosen)
        tags = {**before.tags, name: after}
        if not len(after):
            del tags[name]
        if len(tags) > MOST_TAGS:
            raise NotKept(f"A run keeps {MOST_TAGS} tags at most. Take one away first.")
        if sum(map(len, tags.values())) > MOST_TAGGED:
            raise NotKept(f"A run keeps {MOST_TAGGED:,} marks at most, of all tags together. Tag fewer samples.")
        return replace(before, tags=tags)

    return _changed(run, change)


def keep_view(run: Run, name: str, query: str) -> TagsAndViews:
    """Keep the query of a link under a name, instead of what had the name before; raises NotKept."""
    name, query = _name(name), _query(query)

    def change(before: TagsAndViews) -> TagsAndViews:
        views = {**before.views, name: query}
        if len(views) > MOST_VIEWS:
            raise NotKept(f"A run keeps {MOST_VIEWS} views at most. Remove one first.")
        return replace(before, views=views)

    return _changed(run, change)


def drop_view(run: Run, name: str) -> TagsAndViews:
    """Forget a view; raises NotKept."""
    return _changed(run, lambda before: replace(before, views={k: v for k, v in before.views.items() if k != name}))


def why_not(run: Run) -> str:
    """Why nothing can be noted about a run, as a sentence; "" where it can."""
    if run.is_example:
        return (
            "The example came with the lab and is not written to: notes, tags and views are kept with runs of your own."
        )
    return ""


def _changed(run: Run, change: Callable[[TagsAndViews], TagsAndViews]) -> TagsAndViews:
    """Read, change and replace the file under its lock, so that of two visitors neither loses a mark."""
    if reason := why_not(run):
        raise NotKept(reason)
    try:
        with ProcessLock(run.path / LOCK):
            after = change(read(run))
            tags = {name: indices.tolist() for name, indices in after.tags.items()}
            _write(run.path / FILE, {"tags": tags, "views": dict(after.views)})
    except Busy:
        raise NotKept("Somebody else is noting something about this run. Try again in a moment.") from None
    except OSError as error:
        raise NotKept(f"It could not be kept with the run ({error.strerror or 'not writable'}).") from None
    return after


def _write(path: Path, stored: Mapping[str, Any]) -> None:
    text = json.dumps(stored, separators=(",", ":")) + "\n"
    atomic_files.replace(path, lambda file: file.write(text.encode()))


def _name(name: object) -> str:
    """A name as it is kept; commas separate names in a link."""
    text = " ".join(name.split()) if isinstance(name, str) and len(name) < 1000 else ""
    if not text or not text.isprintable() or "," in text or len(text) > LONGEST_NAME:
        raise NotKept(f"A name has 1 to {LONGEST_NAME} characters and no comma.")
    return text


def _query(query: object) -> str:
    if not isinstance(query, str) or len(query) > LONGEST_QUERY or not query.isprintable():
        raise NotKept(f"A view is a link of at most {LONGEST_QUERY:,} characters.")
    return query


def _indices(values: ArrayLike) -> Ints:
    indices = np.asarray(values)
    if indices.dtype.kind not in "iu" or indices.ndim != 1 or not len(indices) or len(indices) > MOST_TAGGED:
        raise NotKept(f"A tag needs 1 to {MOST_TAGGED:,} samples.")
    if indices.min() < 0 or indices.max() >= 2**31:
        raise NotKept("A sample is named by its number in the data set.")
    return np.unique(indices).astype(np.int64)


def _damaged() -> NotKept:
    return NotKept(
        f"The tags and views of this run cannot be read: the file {FILE} in its folder is damaged. Put it back from a "
        "copy, or remove it to begin anew."
    )
