"""Crash-safe storage of runs: run directories, metric rows, checkpoints, locks and downloads."""
