"""Execution of training runs and jobs as background processes, which wait in one queue per device."""
