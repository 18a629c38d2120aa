"""What all constraints are made of: rows, motions of links, frames, references that move in time."""
