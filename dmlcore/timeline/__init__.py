"""Histories: frames that are determined by a spec, computed step by step, cached, scrubbed and forked."""
