"""Local features of images and the weights that a pooling gives them."""
