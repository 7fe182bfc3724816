"""Caches shared by all visitors. They do not depend on Streamlit, so that services and workers can use them too."""

from __future__ import annotations

import inspect
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from functools import update_wrapper
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def cached(most: int, lifetime: float = float("inf")) -> Callable[[Callable[P, R]], Cached[P, R]]:
    """Return a decorator that caches the last `most` results of a function, each for `lifetime` seconds.

    Errors are not cached. Arguments must be hashable, not arrays; arguments whose name starts with _ are not part of
    the cache key. All callers share one result object and must not modify it.
    """
    return lambda compute: Cached(compute, most, lifetime)


class Cached(Generic[P, R]):
    """Function with cached results; if another thread is already computing a result, a call waits for that result."""

    def __init__(self, compute: Callable[P, R], most: int, lifetime: float) -> None:
        self._compute, self._most, self._lifetime = compute, most, lifetime
        self._signature = inspect.signature(compute)
        self._names = tuple(self._signature.parameters)
        self._kept: OrderedDict[Hashable, tuple[float, Future[R]]] = OrderedDict()
        self._lock = Lock()
        update_wrapper(self, compute)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the cached result, or compute and cache it."""
        given: Iterable[tuple[str, object]]
        if kwargs or len(args) != len(self._names):
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments.items()
        else:
            given = zip(self._names, args, strict=True)
        key = tuple(value for name, value in given if name[0] != "_")
        mine: Future[R] = Future()
        with self._lock:
            until, entry = self._kept.get(key, (0.0, mine))
            if until <= time.monotonic():
                entry = mine
                self._kept[key] = time.monotonic() + self._lifetime, mine
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        if entry is mine:
            try:
                mine.set_result(self._compute(*args, **kwargs))
            except BaseException as error:
                with self._lock:
                    if self._kept.get(key, (0.0, None))[1] is mine:
                        del self._kept[key]
                mine.set_exception(error)
        return entry.result()

    def clear(self) -> None:
        """Remove all cached results."""
        with self._lock:
            self._kept.clear()


def derived(compute: Callable[..., R], *arguments: Any) -> R:
    """Return `compute(*arguments)`; the result is cached for these argument objects.

    `compute` is a module-level function. Numbers and strings are compared by value, lists and tuples item by item,
    other objects (e.g. values cached by a FileCache) by identity.
    """
    answer: R = _derived(compute, Same(arguments))
    return answer


class Same:
    """Cache key that keeps the arguments alive, so that no other object can be given the id of an argument."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        self.identity = identity(arguments)

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.identity == other.identity


def identity(argument: Any) -> Hashable:
    """Return a cache key for an argument, valid while the argument exists."""
    if isinstance(argument, (list, tuple)):
        return type(argument), tuple(map(identity, argument))
    return argument if isinstance(argument, (str, int, float, bool, type(None))) else (object, id(argument))


@cached(128)
def _derived(compute: Callable[..., Any], same: Same) -> Any:
    return compute(*same.arguments)
