"""Analysis of trained embeddings as functions of runs: neighbours, failures, confusions, duplicates and maps."""
