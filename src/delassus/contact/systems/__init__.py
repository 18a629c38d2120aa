"""Contact problems in the form of solvers: scaled σ = G λ + g with cones, with G as a matrix or as products."""
