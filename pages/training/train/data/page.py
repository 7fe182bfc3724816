"""Data: what is there of each data set, how it is split, what its samples look like, what is missing or damaged."""

from pages.training.train.data import view as data_view

data_view.page()
