"""Glossary with one definition per term, shown as help text on the pages and printed in docs/glossary.md.

`python -m pages.shared.words.glossary` writes docs/glossary.md.
"""

from __future__ import annotations

from pathlib import Path

PATH = Path(__file__).parents[3] / "docs" / "glossary.md"

TERMS: dict[str, str] = {
    "anchor, positive, negative": (
        "The three samples of a triplet: the positive is of the anchor's class, the negative is not."
    ),
    "embedding": "The vector (D numbers) that a network assigns to a sample.",
    "margin": "The constant by which a loss requires negatives to be farther than positives.",
    "clamp window": "The interval [0, m₂] to which a loss is clipped; outside it the gradient is zero.",
    "force": "Minus the gradient of the loss with respect to a point.",
    "active region": "The positions of the negative for which the gradient is not zero.",
    "easy, semi-hard, hard": (
        "A negative beyond the margin; farther than the positive but within the margin; nearer than the positive."
    ),
    "miner": "Chooses the tuples of a batch that the loss sees.",
    "sampler": "Chooses the samples of a batch.",
    "proxy": "A learned vector that represents a class in the loss.",
    "prototype": "A learned attribute in pooling; an image's pooled vector is a combination of prototypes.",
    "GAP, GSP": "Global average pooling; generalized sum pooling, which can leave features out.",
    "query, gallery": "The sample whose neighbours are searched; the samples that are searched.",
    "R@K": "Recall at K: the share of queries with a sample of their class among the K nearest neighbours.",
    "MAP@R": (
        "Mean average precision at R: precision over the first R neighbours, where R is the size of the query's "
        "class in the gallery."
    ),
    "false match rate (FMR), false non-match rate (FNMR)": (
        "The share of pairs of different classes, and of pairs of the same class, that a threshold decides wrongly."
    ),
    "equal error rate (EER)": "The rate at the threshold where FMR = FNMR.",
    "OPIS": "Operating-point inconsistency score: how unequal classes are at one threshold.",
    "unseen classes": "Test classes that are not in the training split (zero-shot retrieval).",
    "baseline": "A score without training: raw inputs, the untrained or pretrained network.",
    "significant difference": (
        "A difference that is larger than the noise of seeds and samples explains; otherwise no lead is claimed."
    ),
    "hub": "A sample that is a near neighbour of unusually many others.",
    "covering radius": "The largest distance of a point of a set from the nearest of some chosen points.",
    "spec, run, study, protocol": (
        "The description of a training run; the run itself; many runs for one question; a published evaluation "
        "procedure."
    ),
    "checkpoint": "Weights, optimiser state and counters from which a run resumes.",
}


def explain(*terms: str) -> str:
    """Return the definitions of the given terms as Markdown for the `help` argument of a Streamlit element."""
    return "\n\n".join(f"**{term}**: {TERMS[term]}" for term in terms)


def document() -> str:
    """Return the text of docs/glossary.md."""
    rows = [f"| {term} | {meaning} |" for term, meaning in TERMS.items()]
    return "\n".join(["# Glossary", "", "| term | meaning |", "|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
