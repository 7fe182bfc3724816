"""Projections of embeddings onto the plane with t-SNE, UMAP and PCA, and placement of new embeddings on such a map.

Packages that are slow to import (scikit-learn, openTSNE, umap-learn, torch) are imported on the first call that needs
them.
"""

from dmlcore.projection.linear import pca, place_pca
from dmlcore.projection.on_gpu import Missing
from dmlcore.projection.stochastic import FEWEST, fitting_perplexity, place_tsne, tsne
from dmlcore.projection.uniform import place_umap, umap

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
