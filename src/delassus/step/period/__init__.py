"""A control period: its steps, functions of a user in it, and the kernels of a simulation."""
