"""Data: what is there of each data set, how it is split, what its samples look like, what is missing or damaged."""

from pages._ui import data_view

data_view.page()
