"""Code shared by several pages; pages do not import each other."""
