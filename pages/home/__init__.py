"""The first page: three pictures, three doors."""
