"""What of a protocol was asked for, and making its runs: `.protocols/NAME-DIGEST` in the run store is their place."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

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
    """What of a protocol was asked for: its name or file, the data set, the loss, and what narrows or changes it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    protocol: Positional
    data: str = ""
    loss: str = ""
    overrides: tuple[Positional, ...] = ()
    folds: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The name of the protocol, as `RunSpec.protocol` has it."""
        return path_of(self.protocol).stem

    def read(self) -> Protocol:
        """The protocol; raises SpecError."""
        return read(self.protocol)

    def arguments(self) -> list[str]:
        """The same as arguments of `python -m dmlcore protocol`."""
        given = {"--data": self.data, "--loss": self.loss}
        given |= {"--fold": ",".join(map(str, self.folds)), "--seeds": ",".join(map(str, self.seeds))}
        return [self.protocol, *self.overrides, *(word for pair in given.items() if pair[1] for word in pair)]

    def training(self) -> int | None:
        """Training samples where the schedule is in epochs, else None; raises DataError if they cannot be known."""
        protocol = self.read()
        first = specify(protocol, self.name, self._data(protocol), self.loss, self.overrides, training=0)
        return images(first) if needs_images(protocol, first) else None

    def entries(self) -> list[StudyRun]:
        """Its runs; raises SpecError, and DataError where a schedule in epochs needs data that are not there."""
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
        """In what its runs leave the protocol."""
        return deviations(self.entries()[-1].spec, self.training())

    def _data(self, protocol: Protocol) -> str:
        for line in self.overrides:
            if line.partition("=")[0].strip() == "data.name":
                raise SpecError("data.name: name the data set with --data")
        return data_name(self.data or protocol.data)


class ProtocolState(PlaceState):
    """Where the runs of a protocol stand."""

    request: ProtocolRequest


def place_of(
    request: ProtocolRequest, store: RunStore, entries: Sequence[StudyRun] | None = None
) -> Task[ProtocolState]:
    """Where these very runs are made and summed up; raises SpecError. entries: of the request, if they are known."""
    return _place(request.name, entries or request.entries(), store)


def described(request: ProtocolRequest, entries: Sequence[StudyRun]) -> str:
    """What would be trained, how the source does it, and in what this leaves it, for a terminal."""
    protocol = request.read()
    steps = sum(entry.spec.schedule.steps for entry in entries)
    stops = any(entry.spec.schedule.patience for entry in entries)
    lines = [protocol.title, protocol.sentence, protocol.source, f"weights chosen by: {protocol.selection}"]
    for title, texts in (("open", protocol.open), ("decided", protocol.decided), ("not done here", protocol.missing)):
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
    """Make the runs of the request that are not done, as `studies.run_batch.make` does; raises SpecError too."""
    entries = request.entries()
    place = _place(request.name, entries, store)
    asked = ProtocolState(request=request, backend=parse(backend).text)
    return make(entries, store, place, asked, report=report, stop=stop)


def digest_of(entries: Sequence[StudyRun]) -> str:
    """Twelve digits that name these runs, in whatever order."""
    return hashlib.sha256("\n".join(sorted(entry.digest() for entry in entries)).encode()).hexdigest()[:12]


def _place(name: str, entries: Sequence[StudyRun], store: RunStore) -> Task[ProtocolState]:
    folder: Path = store.root / ".protocols" / f"{name}-{digest_of(entries)}"
    return Task(folder, ProtocolState)
