"""Home page: three figures, each with a link to the page that it introduces."""
