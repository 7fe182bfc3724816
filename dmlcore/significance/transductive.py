"""Label for transductive scores, whose embeddings depend on the samples that are scored together.

Rows of metrics.jsonl have the key `transductive`, specs the property `conditioning.transductive`.
"""

from __future__ import annotations

TRANSDUCTIVE = "transductive"


def mark_transductive(words: str, transductive: object) -> str:
    """Append "(transductive)" to a label if its scores are transductive; a label that already says so is unchanged.

    Example:
        >>> from dmlcore.significance.transductive import mark_transductive
        >>> mark_transductive("one run", True), mark_transductive("one run", None)
        ('one run (transductive)', 'one run')
        >>> mark_transductive("LSTM, transductive", True)
        'LSTM, transductive'
    """
    return f"{words} ({TRANSDUCTIVE})" if transductive and TRANSDUCTIVE not in words.lower() else words
