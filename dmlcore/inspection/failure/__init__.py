"""Analysis of one wrong retrieval: forces on its triplets, and the effect of one gradient or optimiser step."""
