"""The number of rows with an image agrees with what the import accepts."""

import pytest

from dmlcore.data import DataError
from dmlcore.data.embedding_sets import images
from dmlcore.data.embedding_sets.image_match import match_images

FILES = ["a/1.png", "a/2.png", "b/3.png"]
REASON = "row 2 is the first without one"


@pytest.mark.parametrize(
    ("rows", "paths", "ids", "matched", "reason"),
    [
        (3, FILES, None, 3, ""),
        (3, ["./a/1.png", "a//2.png", "b/3.png"], None, 3, ""),
        (3, ["a/1.png", "a/9.png", "b/3.png"], None, 2, f"{REASON} ('a/9.png')"),
        (3, ["a/1.png", None, "b/3.png"], None, 2, REASON),
        (3, ["x/1.png", "x/2.png", "x/3.png"], None, 3, ""),  # moved files are found by name
        (2, ["x/8.png", "x/9.png"], None, 0, "row 1 is the first without one ('x/8.png')"),
        (3, None, ["1", "2", "3"], 3, ""),
        (3, None, ["1", "7", "3"], 2, f"{REASON} ('7')"),
        (3, None, ["x", "y", "z"], 3, ""),  # in order
        (3, None, None, 3, ""),
        (4, None, None, 0, "no column names the files, so there must be as many files as rows"),
    ],
)
def test_rows_with_an_image_are_counted(tmp_path, rows, paths, ids, matched, reason) -> None:
    found = match_images(FILES, rows, paths, ids)
    assert (found.rows, found.matched, found.files, found.reason) == (rows, matched, 3, reason)
    for path in FILES:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    if matched == rows:
        assert len(images.assign(tmp_path, rows, paths, ids)) == rows
    else:
        with pytest.raises(DataError):
            images.assign(tmp_path, rows, paths, ids)
