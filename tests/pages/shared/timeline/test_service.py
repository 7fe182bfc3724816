"""The service of animated pages sends the frames that are ready in time and computes the others in the background."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace

import anyio
import numpy as np
import pytest

from pages.shared.server.exports import Refused
from pages.shared.server.wire import unpack
from pages.shared.timeline import service as timeline_service
from pages.shared.timeline.history_cache import HistoryCache
from pages.shared.timeline.service import Timeline
from tests.members import in_one_case
from tests.started import until
from tests.timeline.sums import Change, Spec, Sums
from tests.wording import says


def timeline(**more) -> Timeline:
    """Return a timeline of two sums; the second starts below zero if the state says so."""
    return Timeline(
        "/api/sums",
        state_of=lambda data: data if isinstance(data, Spec) else Spec(),
        specs=lambda spec: {"A": Spec(), "B": spec},
        kept=HistoryCache(Sums),
        contents=lambda get_answer: ({}, {"sums": np.array(get_answer.frames[1], dtype=np.int32).ravel()}),
        rested=lambda spec, show: {"link": spec.start, "show": show},
        **({"most_steps": 90, "patience": 1.0, "most_frames": 20} | more),
    )


def get_answer(service: Timeline, **request) -> dict:
    answer = unpack(service.answer(request))
    return answer | answer.pop("arrays")


def test_the_steps_a_page_lacks_are_sent_a_few_at_a_time():
    service = timeline()
    first, second = get_answer(service, have=-1, want=30), get_answer(service, have=19, want=30)
    assert (first["first"], first["ready"], first["sums"].tolist()) == (0, 30, list(range(20)))
    assert (second["first"], second["sums"].tolist()) == (20, list(range(20, 31)))
    assert get_answer(service, have=30, want=30)["sums"].tolist() == []


def test_every_stride_and_what_is_asked_for_by_name():
    found = get_answer(timeline(), have=2, want=9, stride=4, frames=[1, 5, -3, "x", 99, None])
    assert found["sums"].tolist() == [1, 4, 5, 8]


def test_what_is_not_ready_in_time_is_made_while_the_answer_travels():
    assert get_answer(timeline(patience=0.0), have=-1, want=9)["ready"] == 0  # at least one step is computed
    service = timeline(patience=0.2)
    slow = service.kept.of(Spec(3))
    grown = slow._next
    slow._next = lambda: (time.sleep(0.02), grown())[1]
    ready = get_answer(service, state=Spec(3), have=-1, want=16)["ready"]
    until(lambda: slow.recorded == 16)
    assert ready < 16


def test_a_step_that_cannot_be_made_ends_both_and_says_why():
    found = get_answer(timeline(), state=Spec(-5), have=-1, want=80)
    assert found["ready"] == 69
    assert says(found["stopped"], "B", "step 70", "the loss is NaN")


def test_at_rest_it_tells_the_link_and_a_draft_is_not_kept():
    service = timeline()
    assert get_answer(service, state=Spec(7), want=5, show=3, rest=True)["link"] == 7
    assert get_answer(service, state=Spec(7), want=5, show=3, rest=True)["show"] == 3
    kept = len(service.kept)
    get_answer(service, state=Spec(7, (Change(4, 1),)), have=4, want=5, draft=True)
    assert len(service.kept) == kept


def test_what_must_be_made_first_is_told_instead():
    service = timeline(prepare=lambda spec: {"preparing": "wait", "failed": False})
    assert get_answer(service, id=4, want=3) == {"id": 4, "preparing": "wait", "failed": False}
    assert len(service.kept) == 0


def computed(service: Timeline, state: Spec, step: int, visit=None) -> None:
    """Compute an export in its own event loop; `visit` runs concurrently and receives an event that marks the end."""

    async def run() -> None:
        async with anyio.create_task_group() as group:
            done = anyio.Event()
            if visit:
                group.start_soon(visit, done)
            try:
                await service.compute(state, step)
            finally:
                done.set()

    with ThreadPoolExecutor(1) as thread:  # browser tests keep an event loop running in the main thread
        thread.submit(anyio.run, run).result()


def test_an_export_gives_its_turn_back_after_each_slice(monkeypatch):
    """A concurrent visitor gets a turn every few steps; the clock advances at each reading."""
    monkeypatch.setattr(timeline_service, "TURNS", anyio.CapacityLimiter(1))
    monkeypatch.setattr(timeline_service, "time", SimpleNamespace(monotonic=iter(range(10_000)).__next__))
    monkeypatch.setattr(timeline_service, "SLICE", 3)
    service, turns = timeline(), []

    async def play(done: anyio.Event) -> None:
        while not done.is_set():
            async with timeline_service.TURNS:
                turns.append(service.kept.of(Spec(3)).recorded)

    computed(service, Spec(3), 60, play)
    assert service.kept.of(Spec(3)).recorded == 60
    assert max(after - before for before, after in pairwise(turns)) <= 3
    assert len(turns) >= 20


def test_a_slice_is_short():
    """No export holds a shared turn for a noticeable time, unless a single step takes that long."""
    assert timeline_service.SLICE <= 1


def test_an_export_ends_where_a_history_stops_and_is_refused_where_it_cannot_begin(monkeypatch):
    service = timeline()
    computed(service, Spec(-5), 80)
    assert service.made(Spec(-5), 80)[1] == 69
    with pytest.raises(ExceptionGroup) as preparing:
        computed(timeline(prepare=lambda spec: {"preparing": "wait"}), Spec(), 3)
    monkeypatch.setattr(timeline_service, "EXPORT_PATIENCE", 0.0)
    with pytest.raises(ExceptionGroup) as late:
        computed(timeline(), Spec(), 3)
    for refused in (preparing, late):
        (error,) = refused.value.exceptions
        assert isinstance(error, Refused)
        assert error.status == 503


@in_one_case(
    key=["id", "state", "have", "want", "show", "stride", "frames", "draft", "rest"],
    bad=[None, [], "x", -5, 10**400, 1e300, True, {"state": 1}, [[1, 2]]],
)
def test_any_value_of_any_key_gets_an_answer(key, bad):
    assert get_answer(timeline(), **{key: bad})["ready"] in (0, 90)
