"""Adapters of other libraries: the calls that a user would make for each case. A library is imported on first use."""
