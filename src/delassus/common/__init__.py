"""What rooms share that know nothing of each other: files that are replaced at once, and the memory that is free."""
