"""Bundled policies, trained on the robots of their tasks."""
