"""The expression graph: programs as data."""
