"""Contact laws as kernels of a robot: rigid, relaxed, soft."""
