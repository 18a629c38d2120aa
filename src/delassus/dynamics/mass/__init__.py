"""What the masses of a robot add up to: mass matrix and its factors, momentum, energy."""
