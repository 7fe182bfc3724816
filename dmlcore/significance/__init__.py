"""Statistical verdicts on scores, given their baselines and their noise."""
