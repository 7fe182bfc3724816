"""An optimiser of docs/recipes.md, one entry in one file, is in spec, command line, form, estimate and training."""

from __future__ import annotations

import subprocess
import sys

from dmlcore.spec import RunSpec
from tests.browser.harness import ROOT

# The catalogue is executed with the entry at its end, before any module imports it.
CODE = """
import re, sys, types
from pathlib import Path

path = Path("dmlcore/spec/optimisers.py")
(recipe,) = re.findall(rf"^# at the end of {path}\\n(.*?)^```$", Path("docs/recipes.md").read_text(), re.DOTALL | re.M)
module = sys.modules["dmlcore.spec.optimisers"] = types.ModuleType("dmlcore.spec.optimisers")
exec(compile(path.read_text() + recipe, path, "exec"), module.__dict__)

from typer.testing import CliRunner

from dmlcore.cli.main import app
from dmlcore.monitoring.estimate.estimate import DataSize, estimate
from dmlcore.spec import RunSpec, SpecError, keys
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import RunStore
from tests.pages.conftest import load_page

folder, digest = sys.argv[1:]
assert RunSpec().digest() == digest, "a new entry must not change the digests of specs without it"
assert keys()["optimiser.momentum_decay"].description == "Decay of the momentum of nadam"
assert "rmsprop, adam, adamw, nadam" in keys()["optimiser.epsilon"].description
try:
    RunSpec().with_overrides(["optimiser.momentum_decay=2"])
except SpecError as error:
    assert str(error) == "optimiser.momentum_decay: must be at most 1.0, got 2"
else:
    raise AssertionError("a value out of range")

chosen = ["optimiser.name=nadam", "optimiser.momentum_decay=0.02"]
memory = {
    name: estimate(RunSpec().with_overrides([f"optimiser.name={name}"]), DataSize((64,), 10, 724, 177, 896)).memory
    for name in ("sgd", "adam", "nadam")
}
assert memory["nadam"] == memory["adam"] > memory["sgd"]

short = ["schedule.steps=4", "schedule.validate_every=4", "device=cpu"]
trained = CliRunner().invoke(app, ["train", "digits", *chosen, *short, "--runs", folder])
assert trained.exit_code == 0, trained.output
(run,) = RunStore(Path(folder)).list()
assert (run.state().state, run.spec.optimiser.momentum_decay) == ("done", 0.02)
saved = checkpoint.load(run.path)
assert any(name.endswith("mu_product") for name in saved.tensors)

page = load_page("settings", base="digits", set=";".join(chosen))
assert not page.exception
(menu,) = (box for box in page.selectbox if box.label == "Optimiser")
assert (menu.value, menu.options[-1]) == ("nadam", "NAdam")
field = page.number_input(key="train-optimiser-momentum-decay")
assert (field.label, field.value, field.step) == ("Momentum decay", 0.02, 0.001)
field.set_value(2.0).run()
assert any("Momentum decay must be" in text.value and "not 2" in text.value for text in page.markdown)
"""


def test_one_entry_adds_an_optimiser_everywhere(tmp_path):
    arguments = [sys.executable, "-c", CODE, str(tmp_path), RunSpec().digest()]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
