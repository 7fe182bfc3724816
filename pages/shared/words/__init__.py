"""Labels, titles, number formats and error messages of the pages."""
