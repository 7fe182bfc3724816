"""What follows from a loss by mathematics: regions, level sets, equal losses, weights of pairs."""
