"""The command line, `dml` or `python -m dmlcore`: one module a group of commands."""
