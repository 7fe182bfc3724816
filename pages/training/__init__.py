"""Training pages: a new run, the table of runs, forks and studies."""
