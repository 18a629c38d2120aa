"""Time-stepping schemes: implicitness, free flight, energy and momentum."""
