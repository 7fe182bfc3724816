"""Engine for SLURM, based on submitit: each training run or job is a batch job, which is requeued after preemption."""

from __future__ import annotations

import socket
from importlib import import_module
from typing import Any, Literal

from dmlcore.jobs.backends.choice import BackendChoice
from dmlcore.jobs.backends.submission import ALONE, ON_NODE, ProcessPlace, Submission
from dmlcore.spec import RunSpec
from dmlcore.storage.task import JobError

MINUTES = 24 * 60  # default time limit of a job in minutes
# final states after which a run without a result is retried; COMPLETED: rank 0 has noticed that another process stopped
_LOST = ("NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "TIMEOUT", "INTERRUPTED", "COMPLETED")


class CarryOut:
    """Callable executed by a SLURM job; submitit calls `checkpoint` on preemption and before the time limit."""

    def __call__(self, submission: Submission) -> None:
        """Execute a submission; called in every process of the job."""
        import submitit

        job = submitit.JobEnvironment()
        address = socket.gethostbyname(job.hostname) if job.num_nodes > 1 else ALONE.address
        place = ProcessPlace(job.global_rank, job.local_rank, job.num_tasks // job.num_nodes, address)
        import_module(ON_NODE).carry_out(submission, place)

    def checkpoint(self, submission: Submission) -> Any:
        """Return the job to requeue; it continues from the last checkpoint in the run directory."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, submission)


class SlurmEngine:
    """Engine that submits SLURM jobs; with cluster "local", submitit starts local processes instead, for tests."""

    title = "SLURM"

    def __init__(self, choice: BackendChoice, cluster: Literal["slurm", "local"] = "slurm") -> None:
        self._choice, self._cluster = choice, cluster

    def submit(self, submission: Submission, spec: RunSpec) -> Any:
        """Submit a batch job; raises JobError if SLURM refuses it or is not available."""
        import submitit

        try:
            executor = submitit.AutoExecutor(folder=submission.folder / "slurm", cluster=self._cluster)
            executor.update_parameters(**self.parameters(spec, submission.processes))
            return executor.submit(CarryOut(), submission)
        except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
            raise JobError(f"backend slurm: {error}") from None

    def parameters(self, spec: RunSpec, processes: int) -> dict[str, Any]:
        """Return the job's parameters for submitit; raises JobError if the nodes cannot share the processes equally."""
        nodes = self._choice.nodes or 1
        each, left = divmod(processes, nodes)
        if left:
            raise JobError(
                f"backend slurm: nodes={nodes} cannot share {processes} processes equally; make processes a "
                "multiple of nodes"
            )
        asked: dict[str, Any] = {
            "name": "dml-lab",
            "nodes": nodes,
            "tasks_per_node": each,
            "cpus_per_task": self._choice.cpus,
            "timeout_min": self._choice.minutes or MINUTES,
        }
        gpus = self._choice.gpus if self._choice.gpus is not None else int(spec.device == "cuda")
        if gpus and spec.device != "cpu":
            asked["gpus_per_node"] = gpus * each
        if self._choice.gigabytes:
            asked["mem_gb"] = self._choice.gigabytes * each
        if self._choice.address:
            asked["slurm_partition"] = self._choice.address
        return asked

    def ended(self, work: Any) -> bool:
        """Return True once the job has ended."""
        return bool(work.done())

    def reason(self, work: Any) -> tuple[str, bool]:
        """Return the job's state with the last line of its stderr, and True if it was lost and may be retried."""
        state = str(work.state)
        words = (work.stderr() or "").strip().splitlines()
        return f"job {work.job_id} is {state.lower()}" + (f": {words[-1]}" if words else ""), state.startswith(_LOST)

    def withdraw(self, work: Any) -> None:
        """Cancel the job if it is queued or running."""
        work.cancel(check=False)

    def release(self, work: Any) -> None:
        """Do nothing, since SLURM frees the resources of an ended job."""

    def waits_for(self, spec: RunSpec, processes: int) -> str:
        """Return a message that the job waits in SLURM's queue, with its partition if one was chosen."""
        return "waiting in SLURM's queue" + (f", partition {self._choice.address}" if self._choice.address else "")
