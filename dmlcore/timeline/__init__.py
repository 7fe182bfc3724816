"""Histories: frames that a spec determines, computed step by step, kept, scrubbed and forked."""
