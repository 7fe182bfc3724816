"""Command line, `dml` or `python -m dmlcore`; one module per group of commands."""
