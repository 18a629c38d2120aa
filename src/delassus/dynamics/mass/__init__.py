"""Mass matrix and its factors, momentum, energy."""
