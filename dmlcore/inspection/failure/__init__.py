"""One wrong answer: the forces of its triplets, and what a step of training would do."""
