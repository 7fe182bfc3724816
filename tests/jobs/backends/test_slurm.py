"""SLURM through submitit: the generated batch script, and a job of submitit's local executor.

No SLURM was available: responses of sacct and scancel, requeueing and time limits were not tested.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from dmlcore.jobs.backends import choice
from dmlcore.jobs.backends.remote import RemoteBackend
from dmlcore.jobs.backends.submission import Submission
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from tests.jobs.backends.test_remote import SPEC, digests, pair, twin  # noqa: F401 - fixtures
from tests.started import until

pytestmark = pytest.mark.skipif(
    find_spec("submitit") is None, reason="submitit is not installed: pip install 'dml-lab[slurm]'"
)
SCRIPT = """#!/bin/bash

# Parameters
#SBATCH --cpus-per-task=4
#SBATCH --error=FOLDER/slurm/%j_0_log.err
#SBATCH --gpus-per-node=GPUS
#SBATCH --job-name=dml-lab
#SBATCH --mem=MEMORYGB
#SBATCH --nodes=NODES
#SBATCH --ntasks-per-node=TASKS
#SBATCH --open-mode=append
#SBATCH --output=FOLDER/slurm/%j_0_log.out
#SBATCH --partition=gpu
#SBATCH --signal=USR2@90
#SBATCH --time=90
#SBATCH --wckey=submitit

# command
export SUBMITIT_EXECUTOR=slurm
srun --unbuffered --output FOLDER/slurm/%j_%t_log.out --error FOLDER/slurm/%j_%t_log.err PYTHON -u -m submitit.core._submit FOLDER/slurm
"""  # noqa: E501 - as it is
SBATCH = """#!/bin/sh
cp "$1" "$(dirname "$0")/script.sh"
echo "Submitted batch job 4711"
"""


@pytest.mark.parametrize(("processes", "nodes", "tasks"), [(1, 1, 1), (4, 2, 2)])
def test_the_batch_script_asks_for_what_was_chosen(
    processes: int, nodes: int, tasks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process gets the requested resources."""
    from dmlcore.jobs.backends.slurm_engine import SlurmEngine

    for name, text in (("sbatch", SBATCH), ("srun", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    engine = SlurmEngine(choice.parse(f"slurm:gpu?cpus=4&gpus=1&gigabytes=16&minutes=90&nodes={nodes}"))
    submission = Submission(str(tmp_path), "run", "train", "", "token", "head", cpus=4, processes=processes)
    job = engine.submit(submission, RunSpec())
    assert job.job_id == "4711"
    script = (tmp_path / "script.sh").read_text()
    asked = {"FOLDER": submission.folder, "PYTHON": sys.executable, "NODES": nodes, "TASKS": tasks}
    asked |= {"GPUS": tasks, "MEMORY": 16 * tasks}
    expected = SCRIPT
    for word, value in asked.items():
        expected = expected.replace(word, str(value))
    assert script == expected
    assert "gpus_per_node" not in engine.parameters(RunSpec().with_overrides(["device=cpu"]), processes)
    if nodes > 1:
        with pytest.raises(choice.JobError, match="nodes=2 cannot share 3 processes equally"):
            engine.parameters(RunSpec(), 3)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(choice.JobError, match=r"backend slurm: .*srun"):
        engine.submit(submission, RunSpec())


@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_of_the_local_executor_makes_the_same_run(
    processes: int, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dmlcore.jobs.backends.slurm_engine import SlurmEngine

    expected = request.getfixturevalue("twin" if processes == 1 else "pair")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    run = RunStore(tmp_path).create(SPEC)
    with run.lock():
        run.update(processes=processes)
    chosen = choice.parse("slurm?minutes=10")
    work = RemoteBackend(chosen, SlurmEngine(chosen, cluster="local")).begin(run, "train")
    until(work.has_ended, run.log_tail)
    assert run.state().state == "done", work.message
    assert run.state().backend == "slurm?minutes=10"
    assert digests(run) == expected
