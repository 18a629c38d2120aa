"""Spatial algebra: small pure functions on arrays, linear part first."""
