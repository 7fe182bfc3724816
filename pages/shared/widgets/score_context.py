"""Sentences with scores that put the result of a run into context: without training, and with other neighbours."""

from __future__ import annotations

from collections.abc import Mapping

from dmlcore.storage.metrics_rows import UNTRAINED, Row, representation
from dmlcore.storage.runs import Run
from pages.shared.state import run_reader
from pages.shared.words.numbers import percent


def beside(run: Run) -> str:
    """Return a sentence with scores that put the result of a run into context; "" if there are none.

    The scores are those without training (raw inputs, untrained network) and those of the trained weights with other
    neighbours, all on the same test samples. The sentence starts with a space, so that it can be appended to a text.
    """
    history = run_reader.reader().history(run)
    if run.is_embedding_set:  # its scores are those of its inputs
        random = history.baselines.get(("chance", "test"))
        return _random_ranking(random) if random else ""
    scores = history.scores
    started = bool(run.spec.model.start)
    parts = [
        f"{representation(subject, pretrained=started)} R@1 {percent(row['recall_at'].get('1'))}, "
        f"MAP@R {percent(row['map_at_r'])}"
        for subject in UNTRAINED
        if (row := scores.get(subject))
    ]
    without = f" Without training: {'; '.join(parts)}." if parts else ""
    gained = run_reader.reader().gain(run)
    return f"{without}{f' {gained.words}' if gained else ''}{_neighbours(scores)}"


def _random_ranking(row: Row) -> str:
    """Return a sentence with the expected scores of neighbours in random order, from a row of kind "baseline"."""
    return f" Random ranking: R@1 {percent(row['recall_at_1'])}, MAP@R {percent(row['map_at_r'])}."


def _neighbours(scores: Mapping[str, Row]) -> str:
    """Return a sentence with the scores of the trained weights without neighbours, and with neighbours of each split.

    Returns "" if the run does not condition embeddings on neighbours.
    """
    named = {
        "alone": "the network alone",
        "inductive": "neighbours from the training split",
        "transductive": "neighbours from the test split (transductive)",
    }
    others = "; ".join(
        f"{words} R@1 {percent(row['recall_at'].get('1'))}, MAP@R {percent(row['map_at_r'])}"
        for subject, words in named.items()
        if (row := scores.get(subject))
    )
    if not others:
        return ""
    if scores.get("trained", {}).get("transductive"):
        return f" **Transductive**: each embedding was read with its neighbours in the test split. {_first(others)}."
    return f" Inductive: each embedding was read with its neighbours in the training split. {_first(others)}."


def _first(words: str) -> str:
    return words[0].upper() + words[1:]
