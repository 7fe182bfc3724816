"""Scheduler that assigns test files to the processes of `pytest -n`.

It differs from `--dist loadfile` of xdist in three ways. Tests are looked up by a dictionary instead of a search. If a
process crashes, its remaining tests are reassigned without the one that crashed; xdist also reassigns tests that have
finished, and a process that gets no others waits forever. The browser tests form two work units, so that only two
processes start a server and Chromium (12 s of CPU time each) while two run other tests from the start.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sized
from typing import Any

from xdist.scheduler import LoadFileScheduling

BROWSER = "tests/browser/test_"
SECOND = BROWSER + "ga"  # the second half of the browser tests by duration starts here


class Halves(LoadFileScheduling):
    """Scheduler whose `assigned_work` contains pending tests only."""

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
        """Keep more than two pending tests per process, because it starts a test only when it knows the next one."""
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
