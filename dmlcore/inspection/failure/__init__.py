"""Analysis of a single retrieval failure: forces on its triplet, and the effect of one gradient or optimiser step."""
