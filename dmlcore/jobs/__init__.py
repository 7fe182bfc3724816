"""Training runs and jobs as background processes, and the queue of each device."""
