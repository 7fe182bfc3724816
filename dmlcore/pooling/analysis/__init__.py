"""Analysis of poolings: the gate of one feature map, convergence, and shares of prototypes."""
