"""Steps of many free bodies: loops over bodies, pairs and contacts, with their indices as data."""
