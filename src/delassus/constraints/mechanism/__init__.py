"""A model with constraints, and the rows of all of them."""
