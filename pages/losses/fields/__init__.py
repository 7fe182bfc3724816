"""Force fields of triplet losses: four views of one page."""
