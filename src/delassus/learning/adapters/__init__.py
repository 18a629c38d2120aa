"""Environments as other packages want them, a thin file each."""
