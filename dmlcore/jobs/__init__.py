"""Training runs as detached processes, and whose turn it is on a device."""
