"""The formulas as their sources print them, written out sample by sample: nothing of dmlcore or a library is used."""
