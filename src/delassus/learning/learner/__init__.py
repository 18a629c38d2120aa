"""Networks, proximal policy optimization, policies and their files."""
