"""Contact problems as solvers see them: σ = G λ + g with cones, in units of the contacts, by matrices or products."""
