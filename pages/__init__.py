"""What the user sees; no mathematics."""
