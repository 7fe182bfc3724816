"""Training runs in this process that are recorded step by step, for replaying, scrubbing and forking."""
