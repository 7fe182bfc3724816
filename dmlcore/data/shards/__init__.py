"""Data sets in shards: tar files of images, and an index for random access."""
