"""Diagnosis of runs and machines: health, comparability, logs, retention, TensorBoard, estimates of time and memory."""
