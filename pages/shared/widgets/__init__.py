"""Parts of pages that several draw."""
