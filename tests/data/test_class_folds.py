import numpy as np
import pytest

from dmlcore import data
from dmlcore.data import DataError, Folds


def test_contiguous_folds_are_ranges_counted_from_the_end():
    folds = [Folds(4, number).validation_classes(np.arange(100)).tolist() for number in (1, 2, 3, 4)]
    assert folds == [list(range(75, 100)), list(range(50, 75)), list(range(25, 50)), list(range(25))]


@pytest.mark.parametrize("order", ["contiguous", "random"])
@pytest.mark.parametrize(("classes", "count"), [(100, 4), (98, 4), (100, 10), (7, 3)])
def test_folds_partition_the_classes_into_nearly_equal_parts(order, classes, count):
    known = np.arange(3, 3 + classes)
    folds = [Folds(count, number, order, seed=5).validation_classes(known) for number in range(1, count + 1)]
    assert sorted(np.concatenate(folds).tolist()) == known.tolist()
    assert np.ptp([len(fold) for fold in folds]) <= 1


def test_random_folds_depend_on_their_seed_alone():
    first, again, other = (Folds(10, 1, "random", seed).validation_classes(np.arange(100)) for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


def test_a_fold_holds_its_classes_out_of_the_training_split():
    found = data.load("toy", split="classes", validation="classes", folds=Folds(4, 2))
    classes = {split: np.unique(found.labels[rows]).tolist() for split, rows in found.splits.items()}
    default = data.load("toy", split="classes", validation="classes")
    assert classes["validation"] == [8, 9, 10, 11]
    assert classes["train"] == [0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15]
    assert np.unique(default.labels[default.splits["validation"]]).tolist() == [12, 13, 14, 15]


def test_impossible_folds_are_refused_by_name():
    with pytest.raises(DataError, match="fold 5 of 4"):
        Folds(4, 5)
    with pytest.raises(DataError, match="10 folds need 20 training classes, two per fold, but there are 16"):
        data.load("toy", split="classes", validation="classes", folds=Folds(10))
    with pytest.raises(DataError, match="folds divide classes, but validation is 'samples'"):
        data.load("toy", split="classes", validation="samples", folds=Folds(2))
    with pytest.raises(DataError, match="folds cannot be used with tokens"):
        data.load("tokens", folds=Folds(2))
