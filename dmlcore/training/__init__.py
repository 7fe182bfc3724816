"""Training: the training loop and its components, such as batches, objective, optimiser, validation and checkpoints."""
