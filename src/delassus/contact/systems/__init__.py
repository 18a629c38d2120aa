"""Contact problems as solvers see them: scaled σ = G λ + g with cones, with G as a matrix or as products."""
