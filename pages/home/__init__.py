"""Home: three figures with a link below each."""
