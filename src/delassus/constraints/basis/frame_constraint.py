"""The base of constraints on a frame, or between two frames: their relative pose and motion."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, NamedTuple

import numpy

import delassus.numpy as np
from delassus.constraints.basis.constraint import NOT_NEGATIVE, Constraint, ConstraintError, row_indices
from delassus.constraints.basis.motions import LinkMotions
from delassus.dynamics.tree.poses import Pair, fixed_pose
from delassus.model.checks import check_placements
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.parts import WORLD, Frame
from delassus.model.placement import HERE, Placement

ROW_NAMES = ("x", "y", "z", "rx", "ry", "rz")

WORLD_FRAME: Final = "world"
"""The name of the world in constraints, unless a frame of the model has it."""


class End(NamedTuple):
    """A frame of a constraint: the link that carries it (or the world), and its placement there."""

    link: int
    placement: Placement


@dataclass(frozen=True)
class FrameConstraint(Constraint):
    """A constraint in the axes of a frame, relative to the world or to a second frame.

    Attributes:
        frame: The frame: a name, a `Frame`, or an index in the model.
        frame2: The second frame, or "world". By default the frame is constrained relative to the world, at its position
            or target if there is one.
        rows: The rows, by number or name ("x", "y", "z"; "rx", "ry", "rz" about them).
        placement: The constraint's frame relative to `frame`.
        placement2: The constraint's second frame relative to `frame2`, or to the world.
    """

    frame: Any
    frame2: Any = None
    _: KW_ONLY
    rows: Any = ()
    placement: Placement = HERE
    placement2: Placement = HERE

    def __post_init__(self) -> None:
        for field in ("frame", "frame2"):
            frame = getattr(self, field)
            if isinstance(frame, Frame):
                object.__setattr__(self, field, frame.name)
                continue
            is_valid_name = isinstance(frame, (str, int, numpy.integer)) and not isinstance(frame, bool)
            if not is_valid_name and not (field == "frame2" and frame is None):
                raise ConstraintError(
                    f"the frame of a constraint is {frame!r}; it must be the name or number of a frame.",
                    code="wrong-type",
                )
        self.check_placement(self.placement)
        self.check_placement(self.placement2)
        if self.frame2 is None and self.placement2 != HERE and not self.has_reference:
            raise ConstraintError(
                f"the constraint {self.label!r} has a second placement but no second frame; pass frame2, or the "
                "placement in the world as its position or target.",
                code="conflicting-arguments",
            )
        names = ROW_NAMES[: self.most]
        object.__setattr__(self, "rows", row_indices(self.label, self.rows, names))
        super().__post_init__()
        for field in ("acceleration", *NOT_NEGATIVE):
            self.per_row(field, len(self.rows))

    def check_placement(self, placement: Any) -> None:
        """Raise an error unless this is a `Placement` of finite values."""
        if not isinstance(placement, Placement):
            raise ConstraintError(
                f"the constraint {self.label!r} needs a Placement, not {placement!r}.", code="wrong-type"
            )
        check_placements((Frame(self.label, WORLD, placement),))

    @property
    def most(self) -> int:
        """The number of rows without selection."""
        raise TypeError(f"{type(self).__name__} does not say how many rows it has.")

    @property
    def label(self) -> str:
        """The name, or those of the frames."""
        frame_labels = [frame if isinstance(frame, str) else f"frame {frame}" for frame in (self.frame, self.frame2)]
        return (isinstance(self.name, str) and self.name) or (
            frame_labels[0] if self.frame2 is None else f"{frame_labels[0]}-{frame_labels[1]}"
        )

    @property
    def has_reference(self) -> bool:
        """True for two frames: the second is the reference."""
        return self.frame2 is not None

    def count(self, model: Model) -> int:
        """The number of selected rows."""
        return len(self.rows)

    def ends(self, model: Model) -> tuple[End, End]:
        """Both frames; the second is that of the world if there is none."""
        first = self._end(model, self.frame, self.placement)
        second = End(WORLD, self.placement2) if self.frame2 is None else self._end(model, self.frame2, self.placement2)
        if first.link == second.link:
            self._refuse(model, first.link)
        return first, second

    def _end(self, model: Model, name: str | int, placement: Placement) -> End:
        if is_the_world(model, name):
            return End(WORLD, placement)
        if not isinstance(name, str) and not 0 <= name < model.nframes:
            raise ConstraintError(
                f"the model has no frame number {name}; it has {model.nframes}.", code="unknown-frame"
            )
        frame = model.frame(name) if isinstance(name, str) else model.frame_list[name]
        return End(*links_of(model).place(frame.joint, frame.placement * placement))

    def _refuse(self, model: Model, link: int) -> None:
        """Raise an error that explains why two frames on one link cannot be constrained."""
        if self.frame2 is not None and self.frame == self.frame2:
            raise ConstraintError(
                f"the constraint {self.label!r} is between the frame {self.frame!r} and itself; "
                "pass another frame as frame2.",
                code="immovable",
            )
        if link == WORLD:
            raise ConstraintError(
                f"the constraint {self.label!r} is on the frame {self.frame!r}, which is fixed to the world and cannot "
                "move. Load the model with root='free', or choose a frame that a joint carries.",
                code="immovable",
            )
        raise ConstraintError(
            f"the constraint {self.label!r} is between {self.frame!r} and {self.frame2!r}, which are on the same body "
            "and cannot move relative to each other. Omit it; if it comes with the model, pass "
            "model_constraints=False and add the others.",
            code="immovable",
        )

    def links(self, model: Model) -> tuple[int, ...]:
        """The links of both frames, without the world."""
        return tuple(end.link for end in self.ends(model) if end.link != WORLD)

    def attachment(self, model: Model) -> End:
        """The first frame."""
        return self.ends(model)[0]

    def relative(self, model: Model) -> bool:
        """Whether both frames are on bodies."""
        return len(self.links(model)) > 1

    def select_rows(self, values: Any) -> Any:
        """The selected rows, of all."""
        return np.stack([values[row] for row in self.rows])

    def local_velocity(self, motions: LinkMotions) -> Pair:
        """The velocity of the first frame, in its axes."""
        first, _ = self.ends(motions.model)
        return fixed_pose(first.placement).motion_to_child(*motions.velocity_of(first.link))

    def second_velocity(self, motions: LinkMotions) -> Pair:
        """The velocity of the second frame's origin, and the angular velocity, in the axes of its link."""
        _, second = self.ends(motions.model)
        v, w = motions.velocity_of(second.link)
        return v + np.cross(w, np.array(second.placement.p)), w

    def in_world(self, motions: LinkMotions) -> Pair:
        """Rotation and origin of the first frame in the world."""
        first, _ = self.ends(motions.model)
        return fixed_pose(first.placement).compose(*motions.in_world(first.link))

    def second_link(self, motions: LinkMotions) -> Pair:
        """Rotation and origin of the second frame's link (or the world), in the first frame."""
        first, second = self.ends(motions.model)
        R, p = motions.between(first.link, second.link)
        inward = first.placement.inverse()
        return inward.R @ R, inward.R @ p + inward.p

    def second_frame(self, motions: LinkMotions) -> Pair:
        """Rotation and origin of the second frame, in the first."""
        _, second = self.ends(motions.model)
        R, p = self.second_link(motions)
        return R @ second.placement.R, p + R @ second.placement.p

    def first_motion(self, model: Model) -> Any:
        """K (6, 6) from motions of the first link to those of the first frame, in its axes."""
        first, _ = self.ends(model)
        inward = first.placement.inverse()
        lever_rows = numpy.cross(inward.p, inward.R, axisb=0, axisc=0)  # p × R, column by column
        return numpy.block([[inward.R, lever_rows], [numpy.zeros((3, 3)), inward.R]]) + 0.0


def is_the_world(model: Model, name: str | int | None) -> bool:
    """Whether a name means the world."""
    return name == WORLD_FRAME and all(frame.name != WORLD_FRAME for frame in model.frame_list)
