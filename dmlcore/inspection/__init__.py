"""Analysis of the trained embeddings of runs: neighbours, failures, confusions, duplicates and maps."""
