"""A model and what holds it, and all the rows that this makes."""
