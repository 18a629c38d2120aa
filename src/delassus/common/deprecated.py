"""Attributes that were renamed: the old name works for one version and warns with the new one."""

from __future__ import annotations

from typing import Any

from delassus.errors import warn


class OldName:
    """A descriptor for an attribute that has been renamed.

    >>> class Body:
    ...     mass = 2.0
    ...     weight = OldName("mass")
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     Body().weight
    2.0
    >>> str(caught[0].message)
    'Body.weight was renamed: use mass.'
    """

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        warn(f"{owner.__name__}.{self.old} was renamed: use {self.new}.", DeprecationWarning)
        return getattr(instance, self.new)
