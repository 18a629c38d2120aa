"""Where shapes touch the ground: gaps, points and normals, inside of kernels."""
