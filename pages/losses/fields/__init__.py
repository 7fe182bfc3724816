"""Force fields of triplet losses: the pages Fields, Compare, Sphere and Pair weights."""
