"""Options that all steps of robots in contact share."""

from __future__ import annotations

from dataclasses import dataclass

from delassus.common.options import Options


@dataclass(frozen=True, eq=False)
class RowOptions(Options):
    """The rows that a step has besides contacts and constraints.

    Attributes:
        limits: Whether joints end at their limits.
        joint_friction: Whether joints have the dry friction of the model.

    >>> dl.contact.RowOptions(limits=True).limits
    True
    """

    limits: bool = False
    joint_friction: bool = False
