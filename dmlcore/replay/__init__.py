"""Training runs in this process, recorded step by step: played, scrubbed, forked."""
