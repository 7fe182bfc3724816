"""Requests for the runs of a protocol, stored in `.protocols/NAME-DIGEST` of the run store, and their execution."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from dmlcore.experiments.protocols.expansion import data_name, deviations, expand, images, needs_images, specify
from dmlcore.experiments.protocols.spec import Protocol, path_of, read
from dmlcore.experiments.studies import StudyRun
from dmlcore.experiments.studies.run_batch import PlaceState, Positional, make
from dmlcore.jobs.backends.choice import parse
from dmlcore.spec import SpecError
from dmlcore.storage.runs import RunStore
from dmlcore.storage.task import Task

log = logging.getLogger(__name__)


class ProtocolRequest(BaseModel):
    """Request for the runs of a protocol: its name or file, data set, loss, and options that select or override
    settings.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    protocol: Positional
    data: str = ""
    loss: str = ""
    overrides: tuple[Positional, ...] = ()
    folds: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Name of the protocol, as in `RunSpec.protocol`."""
        return path_of(self.protocol).stem

    def read(self) -> Protocol:
        """Read the protocol; raise SpecError if it is not valid."""
        return read(self.protocol)

    def arguments(self) -> list[str]:
        """Return the command-line arguments of `python -m dmlcore protocol` for this request."""
        given = {"--data": self.data, "--loss": self.loss}
        given |= {"--fold": ",".join(map(str, self.folds)), "--seeds": ",".join(map(str, self.seeds))}
        return [self.protocol, *self.overrides, *(word for pair in given.items() if pair[1] for word in pair)]

    def training(self) -> int | None:
        """Return the number of training samples if the schedule is in epochs, else None.

        Raises DataError if the number is unknown.
        """
        protocol = self.read()
        first = specify(protocol, self.name, self._data(protocol), self.loss, self.overrides, training=0)
        return images(first) if needs_images(protocol, first) else None

    def entries(self) -> list[StudyRun]:
        """Return the runs of the request.

        Raises SpecError if the request is not valid, and DataError if the schedule is in epochs and the size of the
        data set is unknown.
        """
        protocol = self.read()
        return expand(
            protocol,
            self.name,
            data=self._data(protocol),
            loss=self.loss,
            overrides=self.overrides,
            folds=self.folds,
            seeds=self.seeds,
            training=self.training(),
        )

    def deviations(self) -> list[str]:
        """Return the differences between the specs of the runs and the protocol, one line per key."""
        return deviations(self.entries()[-1].spec, self.training())

    def _data(self, protocol: Protocol) -> str:
        for line in self.overrides:
            if line.partition("=")[0].strip() == "data.name":
                raise SpecError("data.name: name the data set with --data")
        return data_name(self.data or protocol.data)


class ProtocolState(PlaceState):
    """Progress of the runs of a protocol."""

    request: ProtocolRequest


def place_of(
    request: ProtocolRequest, store: RunStore, entries: Sequence[StudyRun] | None = None
) -> Task[ProtocolState]:
    """Return the task that trains and summarises the runs of a request, whose order does not matter.

    Args:
        request: The request.
        store: The run store.
        entries: Runs of the request; if None, they are computed from the request.

    Raises:
        SpecError: If the request is not valid.
    """
    digests = sorted(entry.digest() for entry in entries or request.entries())
    name = f"{request.name}-{hashlib.sha256(chr(10).join(digests).encode()).hexdigest()[:12]}"
    return Task(store.root / ".protocols" / name, ProtocolState)


def describe(request: ProtocolRequest, entries: Sequence[StudyRun]) -> str:
    """Return a description for the terminal: the source's procedure, our deviations from it, and the runs."""
    protocol = request.read()
    steps = sum(entry.spec.schedule.steps for entry in entries)
    stops = any(entry.spec.schedule.patience for entry in entries)
    lines = [protocol.title, protocol.sentence, protocol.source, f"weights chosen by: {protocol.selection}"]
    for title, texts in (("open", protocol.open), ("decided", protocol.decided), ("not reproduced", protocol.missing)):
        lines += [f"{title}: {text}" for text in texts]
    lines += [f"deviates from the protocol in {line}" for line in request.deviations()]
    lines += [
        f"{entry.variant}, seed {entry.seed}: {entry.spec.schedule.steps:,} steps of "
        f"{entry.spec.batch.classes} x {entry.spec.batch.samples}"
        for entry in entries
    ]
    lines.append(f"{len(entries)} runs, {steps:,} steps{' at most' if stops else ''}; the first spec:")
    return "\n".join([*lines, "", entries[0].spec.to_toml()])


def conduct(
    request: ProtocolRequest,
    store: RunStore,
    *,
    report: Callable[[str], object] = log.info,
    stop: Callable[[], bool] = lambda: False,
    backend: str = "",
) -> ProtocolState:
    """Train the unfinished runs of the request and return the final state; see `studies.run_batch.make`.

    Also raises SpecError if the request is not valid.
    """
    entries = request.entries()
    place = place_of(request, store, entries)
    asked = ProtocolState(request=request, backend=parse(backend).text)
    return make(entries, store, place, asked, report=report, stop=stop)
