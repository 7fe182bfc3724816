"""Pages of the Pooling section: Prototypes, Transport, GAP vs GSP and Collage."""
