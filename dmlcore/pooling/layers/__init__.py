"""Pooling layers, one module per layer; each maps (B, C, H, W) to (B, out_features)."""
