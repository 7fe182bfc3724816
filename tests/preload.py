"""Imports of the process whose forks are background tasks of tests (tests/started.py).

It trains once, because torch and scikit-learn import most of their modules at first use.
"""

import gc
import sys
import tempfile
from importlib import import_module

import torch

from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import loop

torch.set_num_threads(1)  # a forked child cannot use the threads of its parent
with tempfile.TemporaryDirectory() as folder:
    run = RunStore(folder).create(RunSpec().with_overrides(["schedule.steps=1"]))
    with run.lock():
        loop.train(run)
# A run starts a second faster without the imports of torch.compile, and a third of a second without SymPy.
assert not {"torch._dynamo", "torch._inductor", "sympy"} & set(sys.modules), "a plain training run imported a compiler"
for module in ("dmlcore.cli.main", "dmlcore.experiments.recovery", "dmlcore.inspection.neighbours"):
    import_module(module)  # imported late by commands and at the end of a run
gc.freeze()  # exclude shared objects from garbage collection in the forks
