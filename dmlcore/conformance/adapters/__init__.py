"""Adapters of libraries, which contain the call that a user would make for each case. Libraries are imported on use."""
