"""What was published, as data: result tables, the errata of its sources, and a reference of every loss."""
