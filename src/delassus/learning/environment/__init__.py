"""Tasks, the end of a control period, and environments."""
