"""What a pooling does, read from the outside: the gate of one map, convergence, shares of prototypes."""
