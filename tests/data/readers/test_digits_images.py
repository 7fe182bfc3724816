import numpy as np
from sklearn.datasets import load_digits

import dmlcore.data


def test_every_pixel_of_a_digit_becomes_a_grey_square():
    vectors, images = dmlcore.data.load("digits"), dmlcore.data.load("digits_pictures")
    assert images.inputs.shape == (1797, 3, 32, 32)
    assert np.array_equal(vectors.labels, images.labels)
    assert all(np.array_equal(vectors.splits[split], images.splits[split]) for split in vectors.splits)
    for row in (0, 1000):
        expected = np.kron(vectors.inputs[row].reshape(8, 8), np.ones((4, 4)))
        assert abs(images.inputs[row] / 255 - expected).max() <= 0.5 / 255 + 1e-6
        assert np.array_equal(images.image(row)[:, :, 1], images.inputs[row, 0])


def test_the_digits_are_those_of_scikit_learn():
    pixels, labels = load_digits(return_X_y=True)
    data = dmlcore.data.load("digits")
    assert np.array_equal(data.inputs * 16, pixels)
    assert np.array_equal(data.labels, labels)
