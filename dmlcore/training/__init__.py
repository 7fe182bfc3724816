"""Training: the training loop and its parts, such as batches, objective, optimiser, validation and checkpoints."""
