"""What constraints on a frame of the robot share: where the frame is on its link."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy

import delassus.numpy as np
from delassus.constraints.constraint import NOT_NEGATIVE, BodyRows, Constraint, ConstraintError, chosen_rows
from delassus.constraints.motions import LinkMotions
from delassus.dynamics.poses import Pair, fixed_pose
from delassus.model.links import links_of
from delassus.model.model import WORLD, Frame, Model, check_placements
from delassus.model.placement import HERE, Placement

ROW_NAMES = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True)
class OnFrame(Constraint):
    """A constraint whose axes are those of a frame: `frame` (its name, a `Frame`, or its number in the model).

    Attributes:
        frame: Where it is attached.
        rows: Which of its rows act, by number or name ("x", "y", "z"; "rx", "ry", "rz" about them).
        placement: The constraint's frame in the named one.
    """

    frame: str | int
    _: KW_ONLY
    rows: Any = ()
    placement: Placement = HERE

    def __post_init__(self) -> None:
        if isinstance(self.frame, Frame):
            object.__setattr__(self, "frame", self.frame.name)
        elif not isinstance(self.frame, (str, int, numpy.integer)):
            raise ConstraintError(f"a constraint is on a frame, given by its name or number, not on {self.frame!r}.")
        self.check_placement(self.placement)
        names = ROW_NAMES[: self.most]
        object.__setattr__(self, "rows", chosen_rows(self.label, self.rows, names))
        super().__post_init__()
        for field in ("acceleration", *NOT_NEGATIVE):
            self.per_row(field, len(self.rows))

    def check_placement(self, placement: Any) -> None:
        """Raise unless a placement is one, of finite numbers."""
        if not isinstance(placement, Placement):
            raise ConstraintError(f"the constraint {self.label!r} needs a Placement, not {placement!r}.")
        check_placements((Frame(self.label, WORLD, placement),))

    @property
    def most(self) -> int:
        """The number of rows it has if all act."""
        raise TypeError(f"{type(self).__name__} does not say how many rows it has.")

    @property
    def label(self) -> str:
        """The name, or the frame's."""
        return self.name or (self.frame if isinstance(self.frame, str) else f"frame {self.frame}")

    def count(self, model: Model) -> int:
        """The rows that act."""
        return len(self.rows)

    def place(self, model: Model) -> tuple[int, Placement]:
        """The link that it is attached to, and the constraint's frame there."""
        frame = model.frame_list[self._index(model)]
        link, placement = links_of(model).place(frame.joint, frame.placement * self.placement)
        if link == WORLD:
            raise ConstraintError(
                f"the constraint {self.label!r} is on the frame {frame.name!r}, which is fixed to the world and "
                "cannot move: there is nothing to constrain. Load the model with root='free', or choose a frame that "
                "a joint carries."
            )
        return link, placement

    def _index(self, model: Model) -> int:
        if isinstance(self.frame, str):
            return model.frame_index(self.frame)
        if not 0 <= self.frame < model.nframes:
            raise ConstraintError(f"the model has no frame number {self.frame}; it has {model.nframes}.")
        return self.frame

    def bodies(self, model: Model) -> tuple[BodyRows, ...]:
        """K: the rows of the matrix that takes the link's motions to those of the constraint's frame."""
        link, placement = self.place(model)
        inward = placement.inverse()
        across = numpy.cross(inward.p, inward.R, axisb=0, axisc=0)  # p × R, column by column
        K = numpy.block([[inward.R, across], [numpy.zeros((3, 3)), inward.R]])
        return (BodyRows(link, K[list(self.rows)] + 0.0),)

    def local_velocity(self, motions: LinkMotions) -> Pair:
        """The velocity of the constraint's frame, in its axes."""
        link, placement = self.place(motions.model)
        return fixed_pose(placement).motion_to_child(*motions.velocity[link])

    def in_world(self, motions: LinkMotions) -> Pair:
        """Rotation and origin of the constraint's frame in the world."""
        link, placement = self.place(motions.model)
        return fixed_pose(placement).compose(*motions.in_world(link))

    def selected(self, values: Any) -> Any:
        """The rows that act, of all."""
        return np.stack([values[row] for row in self.rows])
