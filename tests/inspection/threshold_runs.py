"""Settings of short runs for tests of thresholds."""

QUICK = ("schedule.steps=2", "schedule.validate_every=1", "batch.classes=2", "batch.samples=3")
OPEN = ("data.split=classes", "data.validation=classes")  # test classes are unseen, and so are validation classes
THREE = "data.folds=2"  # three validation classes, the fewest that give intervals; two classes are trained on
