"""Statistical tests of whether scores differ from baselines and from each other by more than noise."""
