"""Display names of runs, data sets and losses, and the text search for runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from dmlcore import losses
from dmlcore.data import DataError, describe, names
from dmlcore.significance.transductive import mark_transductive
from dmlcore.storage.listing import Brief
from dmlcore.storage.runs import Run

OWN = "folder"  # name of the data set that reads the user's own images


def split_of(run: Run) -> str:
    """Return the name of the samples that a page shows: the test split, or all samples of an embedding set."""
    return "embedding set" if run.is_embedding_set and not run.is_logged else "test split of this run"


def label(run: Run) -> str:
    """Return a short unique name of a run; the title of the loss is omitted if the run's name ends with this title."""
    name, loss = run.spec.name or data_title(run.spec.data.name), loss_title(run.spec.loss.name)
    if run.is_example:
        return f"Example · {name}"
    if run.is_embedding_set:
        kind = "trained elsewhere" if run.is_logged else "embedding set"
        return f"{name} · {kind} · {run.id[-4:]}"
    words = " · ".join([name, *([] if name.endswith(loss) else [loss]), run.id[-4:]])
    return mark_transductive(words, run.spec.conditioning.transductive)


def searched(words: str, more: Callable[[str], str] = lambda run_id: "") -> Callable[[str, Brief], bool]:
    """Return a predicate that is True for runs that match all of the given words.

    Words are looked up in the run's ID and name, its data set, network and loss. `more` returns further text for a run
    ID; it is called only if some words were not found.
    """
    asked = words.casefold().split()

    def fits(run_id: str, brief: Brief) -> bool:
        parts = run_id, brief.name, brief.data, data_title(brief.data), brief.model, brief.loss, loss_title(brief.loss)
        text = "\n".join(parts).casefold()
        missing = [word for word in asked if word not in text]
        return not missing or all(word in more(run_id).casefold() for word in missing)

    return fits


@cache
def data_title(name: str) -> str:
    """Return the title of a data set, or `name` itself if this release does not know the data set."""
    try:
        return describe(name).title
    except DataError:
        return name


def data_choices() -> list[str]:
    """Return the names of the data sets in display order: the folder of the user's own images first."""
    return sorted(names(), key=lambda name: name != OWN)


def data_choice(name: str) -> str:
    """Return the label of a data set in a select box; typing "own" or "folder" finds the user's own images."""
    return f"Your own photographs ({describe(name).title.lower()})" if name == OWN else describe(name).title


@cache
def loss_title(name: str) -> str:
    """Return the title of a loss, or `name` itself if this release does not know the loss."""
    return losses.describe(name).title if name in losses.LOSSES else name
