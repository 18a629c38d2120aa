"""Sources of rows: named contact points, joint limits and friction, MuJoCo's welds."""
