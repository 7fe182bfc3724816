"""Measurements and checks of a GPU, which `dml bench gpu` runs one by one: speed of steps, losses and search."""
