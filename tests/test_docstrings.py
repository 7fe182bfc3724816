"""Docstrings of the public names: their examples run, and the required sections of Google style are present."""

import doctest
import inspect

import dmlcore
from dmlcore import geometry, losses, metrics, mining, pooling, projection
from tests.members import in_one_case

PROMISES = {  # sections in addition to Example
    dmlcore.log_run: ("Args", "Returns", "Raises"),
    dmlcore.show: ("Args", "Returns", "Raises"),
    losses.names: (),
    losses.batch_names: (),
    losses.describe: ("Raises",),
    losses.formula: ("Raises",),
    losses.create: ("Args", "Raises", "Reference"),
    losses.for_training: ("Args", "Raises", "Reference"),
    losses.TripletLoss: ("Args", "Raises", "Reference"),
    geometry.forces: ("Args", "Raises", "Reference"),
    geometry.snapshot: ("Args", "Raises", "Reference"),
    geometry.margin_for_ellipse: ("Raises", "Reference"),
    geometry.margin_enclosing: ("Raises", "Reference"),
    geometry.margin_from_data: ("Args", "Returns", "Raises", "Reference"),
    geometry.k_center: ("Args", "Raises", "Reference"),
    metrics.retrieval: ("Args", "Raises", "Reference"),
    metrics.clustering: ("Args", "Raises", "Reference"),
    metrics.nearest: ("Args", "Raises"),
    mining.names: (),
    mining.create: ("Args", "Raises", "Reference"),
    pooling.names: (),
    pooling.create: ("Args", "Raises", "Reference"),
    pooling.transport: ("Args", "Raises", "Reference"),
    pooling.GeneralizedSumPooling: ("Args", "Raises", "Reference"),
    projection.pca: ("Args", "Raises"),
    projection.place_pca: ("Args", "Raises"),
    projection.tsne: ("Args", "Raises", "Reference"),
}


@in_one_case(public=PROMISES)
def test_the_example_of_a_public_name_is_true(public):
    (example,) = doctest.DocTestFinder(recurse=False).find(public, globs={})
    assert example.examples, "the docstring needs an Example section"
    output = []
    doctest.DocTestRunner(verbose=False).run(example, out=output.append)
    assert not output, "".join(output)


@in_one_case(public=PROMISES)
def test_a_public_docstring_has_the_promised_sections(public):
    lines = inspect.getdoc(public).splitlines()
    assert [section for section in PROMISES[public] if f"{section}:" not in lines] == []
