"""Where a network looks: features and pooling weights over an image."""
