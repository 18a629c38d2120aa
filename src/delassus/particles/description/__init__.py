"""What large systems are made of: particles, elements, bodies, obstacles."""
