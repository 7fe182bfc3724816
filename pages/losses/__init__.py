"""Pages of the Losses section: Fields, Charges and Toy training."""
