"""Reruns take turns, and none waits forever."""

from __future__ import annotations

import threading
import time

import pytest

from pages.shared.server import turns


def test_so_many_at_once_and_each_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_turns", threading.BoundedSemaphore(2))
    monkeypatch.setattr(turns, "LONGEST", 30.0)
    lock, inside, most = threading.Lock(), 0, 0

    def rerun() -> None:
        nonlocal inside, most
        with turns.turn():
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.02)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=rerun) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, inside) == (2, 0)


def test_who_has_waited_long_goes_and_a_failure_gives_its_turn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_turns", threading.BoundedSemaphore(1))
    monkeypatch.setattr(turns, "LONGEST", 0.05)
    with turns.turn(), turns.turn(), turns.turn():  # nested turns of one rerun, as when it loads a data set
        pass
    with pytest.raises(ValueError, match="of the page"), turns.turn():
        raise ValueError("of the page")
    assert turns._turns.acquire(blocking=False)
