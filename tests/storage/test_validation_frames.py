"""Files of validation frames: order, replacement, removal and damage."""

from dataclasses import replace

import numpy as np
import pytest

from dmlcore.storage import validation_frames
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.validation_frames import MAX_POINTS, Frame

FRAME = Frame(
    np.array([[1, 0], [-1, 0], [0, 0]], np.float32),
    np.array(1.0),
    np.array([7, 8, 9]),
    np.array([0, 0, 1]),
    np.array([0, 2]),
    np.array([[8, 9], [8, 7]]),
    np.array([[0, 1], [0, 0]]),
)


def test_a_frame_is_read_as_written_and_the_last_one_of_a_step_counts(tmp_path):
    validation_frames.write(tmp_path, 5, replace(FRAME, reach=np.array(3.0)))
    validation_frames.write(tmp_path, 5, FRAME)
    assert [path.name for path in (tmp_path / "validations").iterdir()] == ["00000005.npz"]
    found = validation_frames.read(validation_frames.paths(tmp_path)[5])
    for name, value in vars(FRAME).items():
        np.testing.assert_array_equal(getattr(found, name), value)


def test_steps_ascend_and_those_after_a_step_are_removed(tmp_path):
    assert validation_frames.paths(tmp_path) == {}
    for step in (100_000_000, 20, 0, 3):
        validation_frames.write(tmp_path, step, FRAME)
    (tmp_path / "validations" / ".00000007.npz.tmp").write_bytes(b"half")
    assert list(validation_frames.paths(tmp_path)) == [0, 3, 20, 100_000_000]
    validation_frames.remove_after(tmp_path, 3)
    assert list(validation_frames.paths(tmp_path)) == [0, 3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": np.full((3, 2), np.nan, np.float32)}, "points must contain numbers"),
        ({"labels": np.array([0, 1])}, "labels has a dimension of 2 instead of 3"),
        ({"queries": np.array([0, 3])}, "has query 3 of 3"),
        ({"neighbours": np.zeros((2, 6), int), "neighbour_labels": np.zeros((2, 6), int)}, "(3, 2, 6) samples"),
        (
            {"points": np.zeros((600, 2)), "indices": np.zeros(600, int), "labels": np.zeros(600, int)},
            f"at most ({MAX_POINTS}, 6, 5)",
        ),
    ],
)
def test_a_forged_frame_is_refused(tmp_path, changes, message):
    validation_frames.write(tmp_path, 1, replace(FRAME, **changes))
    with pytest.raises(Unreadable) as error:
        validation_frames.read(validation_frames.paths(tmp_path)[1])
    assert message in str(error.value)
    assert "Choose another validation." in str(error.value)


def test_a_truncated_frame_is_refused(tmp_path):
    validation_frames.write(tmp_path, 1, FRAME)
    path = validation_frames.paths(tmp_path)[1]
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(Unreadable, match="Choose another validation"):
            validation_frames.read(path)
