"""Published material as data: result tables, the errata of their sources, and a reference page for every loss."""
