"""Training runs in this process that are recorded step by step, so that they can be played, scrubbed and forked."""
