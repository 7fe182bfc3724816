"""Pages that show the forces and weights of triplet losses: Fields, Compare, Sphere and Pair weights."""
