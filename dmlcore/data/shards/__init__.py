"""Data sets in shards: images side by side in tar files, and an index by which each is read alone."""
