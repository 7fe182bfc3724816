"""Files of data sets: where they lie, lists, archives, images decoded once, downloads."""
