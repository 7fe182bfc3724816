"""Training: a spec, its runs, studies of many."""
