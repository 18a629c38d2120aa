"""Linear models of constrained robots, and the feedback that is best for them."""
