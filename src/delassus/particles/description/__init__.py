"""The parts of large systems: particles, elements, bodies, obstacles."""
