"""The import graph has no circles, even through imports inside of functions."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph("dmlcore", "pages", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the circle
