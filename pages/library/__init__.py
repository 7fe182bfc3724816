"""What is printed: tables, and what is wrong in them."""
