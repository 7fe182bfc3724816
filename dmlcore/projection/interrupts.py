"""Delay of signals during native code that crashes if a signal handler raises an exception."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def delay_signals() -> Iterator[Callable[[], None]]:
    """Delay the handlers of SIGINT and SIGTERM until the block ends or calls the yielded function.

    Handlers often raise KeyboardInterrupt, and openTSNE crashes if an exception leaves the constructor of its tree.
    Outside the main thread, where no handlers run, this does nothing.

    Yields:
        Function that runs the handlers of the signals received so far.

    Example:
        >>> from dmlcore.projection.interrupts import delay_signals
        >>> with delay_signals() as run_handlers:
        ...     run_handlers()  # a point at which an exception does no harm
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    received: list[int] = []
    handlers = {number: signal.getsignal(number) or signal.SIG_DFL for number in SIGNALS}

    def delay() -> None:
        for number in handlers:
            signal.signal(number, lambda number, _: received.append(number))

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def run_handlers() -> None:
        if received:
            restore()
            signal.raise_signal(received.pop())
            delay()

    delay()
    try:
        yield run_handlers
    finally:
        restore()
        while received:
            signal.raise_signal(received.pop())
