"""Immutable objects and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.errors import DelassusError


class FrozenError(DelassusError, AttributeError):
    """An attempt to change an attribute of an immutable object."""

    code = "frozen"


class Frozen:
    """A base class whose attributes cannot be set after `freeze`, since compiled code depends on them.

    Call `freeze` at the end of the constructor.
    """

    def freeze(self) -> None:
        """Make all attributes immutable."""
        self.__dict__["_is_frozen"] = True

    def __setattr__(self, name: str, value: Any) -> None:
        self._check_open(name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._check_open(name)
        object.__delattr__(self, name)

    def _check_open(self, name: str) -> None:
        if "_is_frozen" in self.__dict__:
            kind = type(self).__name__
            raise FrozenError(
                f"{name} of this {kind} cannot be changed; create a new {kind} with the value that you need."
            )


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view of an array that cannot be written to; its owner may still write."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
