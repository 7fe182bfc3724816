"""Analysis of poolings: the gate for one feature map, convergence, and shares of prototypes."""
