"""Numbers, not robots: NumPy functions traced to expression graphs and compiled to native SIMD ufuncs."""
