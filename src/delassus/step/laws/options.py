"""Options that all steps of robots in contact share."""

from __future__ import annotations

from dataclasses import dataclass

from delassus.common.options import Options


@dataclass(frozen=True, eq=False)
class RowOptions(Options):
    """The rows of a step in addition to contacts and constraints.

    Attributes:
        limits: Whether joint limits act.
        joint_friction: Whether the joint friction of the model acts.

    >>> dl.contact.RowOptions(limits=True).limits
    True
    """

    limits: bool = False
    joint_friction: bool = False
