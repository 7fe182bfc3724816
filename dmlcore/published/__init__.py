"""What was published, as data: result tables, the errata of the 2021 thesis, and a reference of every loss."""
