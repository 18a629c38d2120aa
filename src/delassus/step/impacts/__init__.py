"""Impacts: when a contact strikes, and what velocities it leaves."""
