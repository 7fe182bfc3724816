"""Which process of `pytest -n` has which files of tests.

As `--dist loadfile` of xdist, but for three things. A test is looked up, not searched among all. The tests that a
process leaves behind when it dies are handed on, without the one that it died of; xdist hands on what was done already
as well, and whoever is given nothing else waits for ever. And the browser tests are two pieces of work: two processes
start a server and a Chromium, twelve seconds of processor each, and two have the other tests from the start.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sized
from typing import Any

from xdist.scheduler import LoadFileScheduling

BROWSER = "tests/browser/test_"
SECOND = BROWSER + "ga"  # where the second half of their seconds begins


class Halves(LoadFileScheduling):
    """Here `assigned_work` holds what is still to be done, and nothing else."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return f"browser {file >= SECOND}" if file.startswith(BROWSER) else file

    def add_node_collection(self, node: Any, collection: Any) -> None:
        super().add_node_collection(node, collection)
        self.places = {nodeid: place for place, nodeid in enumerate(collection)}

    def _assign_work_unit(self, node: Any) -> None:
        scope, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][scope] = tests
        node.send_runtest_some([self.places[nodeid] for nodeid in tests])

    def _pending_of(self, workload: Mapping[str, Sized]) -> int:
        return sum(map(len, workload.values()))

    def _reschedule(self, node: Any) -> None:
        """A process begins a test when it knows of the next, so until it ends it has more than two."""
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) <= 2:
            if self.workqueue:
                self._assign_work_unit(node)
            else:
                node.shutdown()

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        nodeid = self.registered_collections[node][item_index]
        work, scope = self.assigned_work[node], self._split_scope(nodeid)
        del work[scope][nodeid]
        if not work[scope]:
            del work[scope]
        self._reschedule(node)

    def remove_node(self, node: Any) -> str | None:
        left = self.assigned_work.pop(node)
        if not left:
            return None
        scope, tests = next(iter(left.items()))
        del tests[crashed := next(iter(tests))]
        if not tests:
            del left[scope]
        self.workqueue = OrderedDict(left | self.workqueue)
        for other in self.nodes:
            self._reschedule(other)
        return crashed
