"""Page state from links and messages, read as untrusted input; cached contents of run directories."""
