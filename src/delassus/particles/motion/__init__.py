"""Steps of time, rest, motions, and what is drawn of them."""
