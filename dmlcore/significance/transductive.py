"""The mark of scores whose embeddings depend on what is scored with them: wherever they are shown it is made here.

Rows of metrics.jsonl have the field `transductive`, specs the property `conditioning.transductive`.
"""

from __future__ import annotations

TRANSDUCTIVE = "transductive"


def marked(words: str, transductive: object) -> str:
    """The words that scores stand under, with the mark where they are transductive; words that say so stay as they are.

    Example:
        >>> from dmlcore.significance.transductive import marked
        >>> marked("one run", True), marked("LSTM, transductive", True), marked("one run", None)
        ('one run (transductive)', 'LSTM, transductive', 'one run')
    """
    return f"{words} ({TRANSDUCTIVE})" if transductive and TRANSDUCTIVE not in words.lower() else words
