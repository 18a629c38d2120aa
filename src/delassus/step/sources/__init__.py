"""From a robot to contact problems: where it touches, what limits its joints, and a step of time of all of it."""
