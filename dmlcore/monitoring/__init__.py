"""Monitoring of runs and machines: health, comparability, logs, clean-up, TensorBoard, estimated time and memory."""
