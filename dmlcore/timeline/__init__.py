"""Histories: sequences of frames that are determined by a spec, computed step by step, cached, and forked."""
