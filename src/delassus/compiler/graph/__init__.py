"""The expression graph: programs as data, and what they are made of."""
