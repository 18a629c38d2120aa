"""Laws of contact as kernels of a robot: rigid, relaxed, soft."""
