"""Contacts of particles and bodies."""
