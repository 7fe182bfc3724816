"""Networks: backbones, pooling and embedding heads, and published weights."""
