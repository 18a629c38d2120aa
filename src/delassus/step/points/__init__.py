"""Named contact points of a robot: their gaps, Jacobians, coefficients, and the response of the robot to them."""
