"""Models of mechanisms: frozen data, hashable by content."""
