"""The rows of a mechanism in a state: Jacobian, bias, references, options."""
