"""Formulas as printed in their sources, written out sample by sample without code of dmlcore or of a library."""
