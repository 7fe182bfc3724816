"""SLURM as an engine, through submitit: each task on a run is a batch job; preempted ones go on where they were."""

from __future__ import annotations

import socket
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from dmlcore.jobs.backends.choice import BackendChoice
from dmlcore.jobs.backends.order import ALONE, ON_NODE, ProcessPlace
from dmlcore.spec import RunSpec
from dmlcore.storage.task import JobError

MINUTES = 24 * 60  # of a job for which no limit is asked
_LOST = ("NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "TIMEOUT", "INTERRUPTED")


class CarryOut:
    """What the job calls; submitit asks `checkpoint` when the job is to make room or its time is up."""

    def __call__(self, folder: str) -> None:
        """What the command line does with an order there; each task of a job that has several comes here."""
        import submitit

        job = submitit.JobEnvironment()
        address = socket.gethostbyname(job.hostname) if job.num_nodes > 1 else ALONE.address
        place = ProcessPlace(job.global_rank, job.local_rank, job.num_tasks // job.num_nodes, address)
        import_module(ON_NODE).carry_out(folder, place)

    def checkpoint(self, folder: str) -> Any:
        """The same job again: what it finds in its folder it goes on with."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, folder)


class SlurmEngine:
    """The jobs of one process; cluster: "local" has submitit start processes here in place of jobs, to try it out."""

    title = "SLURM"

    def __init__(self, choice: BackendChoice, cluster: Literal["slurm", "local"] = "slurm") -> None:
        self._choice, self._cluster = choice, cluster

    def submit(self, folder: str, spec: RunSpec, processes: int) -> Any:
        """A batch job; raises JobError where SLURM refuses it or is not there."""
        import submitit

        try:
            executor = submitit.AutoExecutor(folder=Path(folder) / "slurm", cluster=self._cluster)
            executor.update_parameters(**self.parameters(spec, processes))
            return executor.submit(CarryOut(), folder)
        except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
            raise JobError(f"backend slurm: {error}") from None

    def parameters(self, spec: RunSpec, processes: int) -> dict[str, Any]:
        """What is asked of SLURM, as submitit names it; raises JobError where machines do not share it out equally."""
        nodes = self._choice.nodes or 1
        each, left = divmod(processes, nodes)
        if left:
            raise JobError(f"backend slurm: nodes={nodes} cannot share {processes} processes equally; change either")
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
        """Whether the job has ended."""
        return bool(work.done())

    def reason(self, work: Any) -> tuple[str, bool]:
        """Its state, and the last line that it wrote."""
        state = str(work.state)
        words = (work.stderr() or "").strip().splitlines()
        return f"job {work.job_id} is {state.lower()}" + (f": {words[-1]}" if words else ""), state.startswith(_LOST)

    def withdraw(self, work: Any) -> None:
        """Take the job out of the queue."""
        work.cancel(check=False)

    def release(self, work: Any) -> None:
        """A job frees what it holds by itself."""

    def waits_for(self, spec: RunSpec, processes: int) -> str:
        """Its queue."""
        return "waiting in the queue of SLURM" + (f", partition {self._choice.address}" if self._choice.address else "")
