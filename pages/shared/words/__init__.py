"""Labels, titles, numbers and errors in the words of the pages."""
