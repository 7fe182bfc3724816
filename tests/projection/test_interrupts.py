"""Delay of signals during native code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from dmlcore import projection
from dmlcore.projection import interrupts


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Set the handler that Python has in a terminal: a shell makes its background processes ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_waits_for_a_safe_point():
    def work() -> None:
        with interrupts.delay_signals() as run_handlers:
            run_handlers()
            signal.raise_signal(signal.SIGINT)
            seen.append("still here")
            run_handlers()
            seen.append("not reached")

    seen: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == ["still here"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_waits_for_the_end_of_the_block_at_most():
    with pytest.raises(KeyboardInterrupt), interrupts.delay_signals():
        signal.raise_signal(signal.SIGINT)


def test_a_handler_that_raises_nothing_is_called_and_signals_are_delayed_again():
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append("handler"))
    seen: list[str] = []
    try:
        with interrupts.delay_signals() as run_handlers:
            for _ in range(2):
                signal.raise_signal(signal.SIGTERM)
                seen.append("delayed")
                run_handlers()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == ["delayed", "handler"] * 2


def test_another_thread_leaves_the_handlers_alone():
    def check() -> None:
        with interrupts.delay_signals() as run_handlers:
            run_handlers()
            seen.append(signal.getsignal(signal.SIGINT))

    seen: list[object] = []
    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_tsne_is_interrupted_between_iterations(monkeypatch):
    """An exception within the constructor of openTSNE's tree would crash the process."""
    from openTSNE import tsne

    whole = tsne.kl_divergence_bh
    complete = []

    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        result = whole(*arguments, **options)
        complete.append(True)
        return result

    monkeypatch.setattr(tsne, "kl_divergence_bh", interrupted)
    with pytest.raises(KeyboardInterrupt):
        projection.tsne(np.random.default_rng(0).normal(size=(20, 3)), iterations=100)
    assert complete
