"""What a robot is held by: constraints, and the mechanism that they make of a model."""
