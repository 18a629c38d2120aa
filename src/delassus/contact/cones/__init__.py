"""Cones of impulses: what a contact may push, how friction limits it, and the nearest point that is allowed.

`Friction`, `Free`, `NonNegative` and `Interval` are the parts of a `ContactProblem`.
"""

from delassus.contact.cones.kinds import ConeError, Free, Friction, Interval, NonNegative

__all__ = ["ConeError", "Free", "Friction", "Interval", "NonNegative"]
