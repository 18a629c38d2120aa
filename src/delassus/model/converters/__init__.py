"""Conversion of models and states to and from other libraries."""
