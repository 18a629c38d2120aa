"""What learns: networks, proximal policy optimisation, policies and their files."""
