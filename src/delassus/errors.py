"""What Delassus raises and warns with: one base class, each error carries its data."""


class DelassusError(Exception):
    """Base class of every error that Delassus raises on its own account."""


class DelassusWarning(UserWarning):
    """Something was repaired or skipped, and the result is still right."""
