"""Steps under MuJoCo's contact law: the velocity minimizes a convex function, by Newton's method."""
