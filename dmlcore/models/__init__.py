"""Networks: backbone, pooling and embedding; published weights."""
