"""Sources of rows: contact points by name, limits and dry friction of joints, welds as in MuJoCo."""
