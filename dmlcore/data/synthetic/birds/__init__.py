"""Generated drawings of bird species."""
