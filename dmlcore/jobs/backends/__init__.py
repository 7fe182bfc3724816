"""Execution backends for training runs and jobs: processes of this machine, or an existing Ray or SLURM cluster."""
