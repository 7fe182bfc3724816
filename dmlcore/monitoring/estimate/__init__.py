"""Time and memory of a training before it is started."""
