"""What robots practise, and where: tasks, the end of a period, environments."""
