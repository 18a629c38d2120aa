"""Results of learning: pages, films, and exported policies."""
