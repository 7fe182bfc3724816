"""What a trained network knows and confuses, of the run chosen once."""
