"""Statistical verdicts on scores, given baselines and noise."""
