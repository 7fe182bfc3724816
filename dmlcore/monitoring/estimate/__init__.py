"""Time and memory of a training run before it is started."""
