"""What all losses share: the decorator, the modules, the tables of pairs and triplets they are summed over."""
