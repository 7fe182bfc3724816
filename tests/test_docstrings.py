"""The public names that callers rely on: their examples run, and their docstrings say shapes, errors and source."""

import doctest
import inspect

from dmlcore import geometry, losses, metrics, mining, pooling, projection
from tests.members import in_one_case

GOOGLE = {"Shapes": "Args", "Raises": "Raises", "Source": "Reference"}  # the sections of Google style
PROMISES = {  # which sections besides an example
    losses.names: (),
    losses.batch_names: (),
    losses.describe: ("Raises",),
    losses.formula: ("Raises",),
    losses.create: ("Shapes", "Raises", "Source"),
    losses.for_training: ("Shapes", "Raises", "Source"),
    losses.TripletLoss: ("Shapes", "Raises", "Source"),
    geometry.forces: ("Shapes", "Raises", "Source"),
    geometry.snapshot: ("Shapes", "Raises", "Source"),
    geometry.margin_for_ellipse: ("Raises", "Source"),
    geometry.margin_enclosing: ("Raises", "Source"),
    geometry.k_center: ("Shapes", "Raises", "Source"),
    metrics.retrieval: ("Shapes", "Raises", "Source"),
    metrics.clustering: ("Shapes", "Raises", "Source"),
    metrics.nearest: ("Shapes", "Raises"),
    mining.names: (),
    mining.create: ("Shapes", "Raises", "Source"),
    pooling.names: (),
    pooling.create: ("Shapes", "Raises", "Source"),
    pooling.transport: ("Shapes", "Raises", "Source"),
    pooling.GeneralizedSumPooling: ("Shapes", "Raises", "Source"),
    projection.pca: ("Shapes", "Raises"),
    projection.place_pca: ("Shapes", "Raises"),
    projection.tsne: ("Shapes", "Raises", "Source"),
}


@in_one_case(public=PROMISES)
def test_the_example_of_a_public_name_is_true(public):
    (example,) = doctest.DocTestFinder(recurse=False).find(public, globs={})
    assert example.examples, "an example, please"
    said = []
    doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert not said, "".join(said)


@in_one_case(public=PROMISES)
def test_a_public_docstring_says_shapes_errors_and_source(public):
    lines = inspect.getdoc(public).splitlines()
    missing = [
        section
        for section in PROMISES[public]
        if f"{GOOGLE[section]}:" not in lines and not any(line.startswith(f"{section}: ") for line in lines)
    ]
    assert not missing
