"""What several pages use; pages know nothing else of each other."""
