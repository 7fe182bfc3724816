"""One module a pooling: (B, C, H, W) -> (B, C)."""
