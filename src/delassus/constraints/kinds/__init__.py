"""Types of constraints, one file each."""
