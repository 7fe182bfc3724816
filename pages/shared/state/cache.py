"""What is computed once for all visitors, without Streamlit: services and workers may use it too."""

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
    """Keep the last `most` answers of a function, each for `lifetime` seconds; errors are not kept.

    Arguments are names and numbers, never arrays; one whose name begins with _ is no part of the key. All callers get
    the same answer, which nobody may change.
    """
    return lambda compute: Cached(compute, most, lifetime)


class Cached(Generic[P, R]):
    """A function with its answers; who asks for one that is being computed waits for it."""

    def __init__(self, compute: Callable[P, R], most: int, lifetime: float) -> None:
        self._compute, self._most, self._lifetime = compute, most, lifetime
        self._signature = inspect.signature(compute)
        self._names = tuple(self._signature.parameters)
        self._kept: OrderedDict[Hashable, tuple[float, Future[R]]] = OrderedDict()
        self._lock = Lock()
        update_wrapper(self, compute)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The kept answer, or a new one."""
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
        """Forget all answers."""
        with self._lock:
            self._kept.clear()


def derived(compute: Callable[..., R], *arguments: Any) -> R:
    """`compute(*arguments)`, once for the very same objects, such as what a FileCache keeps until its file changes.

    compute: a function of a module. Numbers and texts count by their value, lists and tuples item by item.
    """
    answer: R = _derived(compute, Same(arguments))
    return answer


class Same:
    """Arguments as a key that holds them, so that no other object gets the identity of one."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        self.identity = identity(arguments)

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.identity == other.identity


def identity(argument: Any) -> Hashable:
    """What tells an argument from another one as long as it is held."""
    if isinstance(argument, (list, tuple)):
        return type(argument), tuple(map(identity, argument))
    return argument if isinstance(argument, (str, int, float, bool, type(None))) else (object, id(argument))


@cached(128)
def _derived(compute: Callable[..., Any], same: Same) -> Any:
    return compute(*same.arguments)
