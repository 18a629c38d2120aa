"""What particles and bodies touch."""
