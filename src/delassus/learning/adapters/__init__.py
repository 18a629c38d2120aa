"""Environments with the interfaces of other packages, one file each."""
