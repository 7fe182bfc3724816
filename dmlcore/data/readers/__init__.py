"""One reader a data set, from its official layout to samples."""
