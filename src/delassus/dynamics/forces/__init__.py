"""Forward and inverse dynamics, passive forces, tendons."""
