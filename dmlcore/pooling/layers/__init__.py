"""Pooling layers, one module per layer; each maps (B, C, H, W) to (B, out_features)."""

from dmlcore.catalogue import discover

discover(
    __name__,
    first=(
        *("gap", "gmp", "gap_gmp", "gem", "gemax", "crow", "delf", "cbam", "gsop", "solar", "tsmk", "netvlad", "otp"),
        *("weldon", "generalized_sum", "gsp_gmp"),
    ),
)
