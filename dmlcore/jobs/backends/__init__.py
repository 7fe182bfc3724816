"""Execution backends of runs and jobs: processes of this machine, or an existing Ray or SLURM cluster."""
