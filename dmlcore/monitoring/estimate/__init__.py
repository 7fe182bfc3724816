"""Estimates of a training run's time and memory before it is started."""
