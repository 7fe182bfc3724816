"""Embeddings on a plane: t-SNE, UMAP and PCA, and where new points belong on a plane that is there.

What is slow to import (scikit-learn, openTSNE, umap-learn, torch) is imported by the first call that needs it.
"""

from dmlcore.projection.linear import pca, place_pca
from dmlcore.projection.stochastic import FEWEST, fitting_perplexity, place_tsne, tsne
from dmlcore.projection.uniform import Missing, place_umap, umap

__all__ = [
    "FEWEST",
    "Missing",
    "fitting_perplexity",
    "pca",
    "place_pca",
    "place_tsne",
    "place_umap",
    "tsne",
    "umap",
]
