"""What to say about runs: health, comparability, TensorBoard, time and memory before a start."""
