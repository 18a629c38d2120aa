"""Where bodies and frames are, how they move, and configurations as points of a manifold."""
