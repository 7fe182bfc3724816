"""Runs on disk, torn by no crash: directories, rows, checkpoints, locks, downloads."""
