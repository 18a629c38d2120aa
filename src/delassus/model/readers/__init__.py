"""Models from files: URDF, MJCF, names of robots."""
