"""Page state read from links and messages as untrusted input, and cached contents of run directories."""
