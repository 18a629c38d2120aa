"""Contact: what only pushes, with friction: cones, problems, their solvers, and the way from a robot to a problem."""
