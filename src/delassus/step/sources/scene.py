"""What is compiled of a robot in contact: its rows, their order, and which of them may only push."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from delassus.compiler.graph.parameters import Parametric
from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.basis.on_frame import WORLD_FRAME
from delassus.constraints.mechanism.mechanism import Mechanism, ParametricMechanism
from delassus.contact.cones.kinds import Cone, Free, Friction, Interval, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.tangents import contact_axes
from delassus.model.of_model import OfModel
from delassus.model.placement import Placement
from delassus.step.sources.contact import Contact
from delassus.step.sources.limits import JointLimit, dry_joints, limits_of
from delassus.step.sources.quaternion_weld import as_in_mujoco
from delassus.step.sources.spot import ROWS, Plane, Spot


@dataclass(frozen=True)
class Scene(OfModel):
    """A mechanism, where it may touch something, and whether its joints have limits and dry friction.

    Rows come in this order: contacts (t1, t2, n of each point, spin and roll where there is such friction), constraints
    of the mechanism, limits of joints, dry friction of joints.

    Attributes:
        mechanism: The robot and its bilateral constraints.
        contacts: Their shapes alone; friction and the like are numbers of a state.
        limits: Whether joints end at their limits.
        joint_friction: Whether joints have their dry friction.
        as_in_mujoco: Whether bodies touch halfway between their surfaces, and welds are quaternions, as in MuJoCo.
    """

    mechanism: Mechanism
    contacts: tuple[Contact, ...]
    limits: bool = False
    joint_friction: bool = False
    as_in_mujoco: bool = False

    def __new__(cls, mechanism: Any = None, *_: Any, **__: Any) -> Scene:
        """A scene, with parameters if its mechanism has some."""
        return object.__new__(ParametricScene if isinstance(mechanism, ParametricMechanism) else cls)

    @property
    def model(self) -> Any:  # type: ignore[override]
        """The robot."""
        return self.mechanism.model

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """The points that may touch."""
        return tuple(spot for contact in self.contacts for spot in _spots(contact, self.as_in_mujoco))

    @cached_property
    def ties(self) -> tuple[Constraint, ...]:
        """The bilateral constraints."""
        own = self.mechanism.constraints
        return tuple(map(as_in_mujoco, own)) if self.as_in_mujoco else own

    @cached_property
    def stops(self) -> tuple[JointLimit, ...]:
        """The limits of joints."""
        return limits_of(self.model) if self.limits else ()

    @cached_property
    def _dry(self) -> tuple[tuple[Constraint, ...], tuple[float, ...]]:
        return dry_joints(self.model) if self.joint_friction else ((), ())

    @property
    def dry_bounds(self) -> tuple[float, ...]:
        """The dry friction [N·m, N] of the rows that have it."""
        return self._dry[1]

    @cached_property
    def rows(self) -> Mechanism:
        """The robot with all rows."""
        constraints = (*self.spots, *self.ties, *self.stops, *self._dry[0])
        return Mechanism(self.model, constraints, model_constraints=False)

    def on_planes(self, normal: Any, height: Any) -> Mechanism:
        """The robot with all rows, where points are against other planes in the world: (points, 3) and (points,)."""
        if normal is None and height is None:
            return self.rows
        spots = []
        for k, spot in enumerate(self.spots):
            if spot.frame2 != WORLD_FRAME:
                spots.append(spot)
                continue
            axes = spot.placement2.R if normal is None else contact_axes(normal[k])
            far = axes[:, 2] @ spot.placement2.p if height is None else height[k]
            spots.append(replace(spot, plane=Plane(axes, far * axes[:, 2])))
        constraints = (*spots, *self.rows.constraints[len(spots) :])
        return Mechanism(self.model, constraints, model_constraints=False)

    @cached_property
    def layout(self) -> Layout:
        """The cones of all rows."""
        cones: list[Cone] = [Friction(contact.rows) for contact in self.contacts for _ in contact.corners]
        if self.mechanism.m:
            cones.append(Free(self.mechanism.m))
        if self.stops:
            cones.append(NonNegative(len(self.stops)))
        if self.dry_bounds:
            cones.append(Interval(len(self.dry_bounds)))
        return Layout(tuple(cones))

    @property
    def m(self) -> int:
        """The number of rows."""
        return self.layout.m

    @property
    def points(self) -> int:
        """The number of points that may touch."""
        return len(self.spots)

    @property
    def torsional(self) -> int:
        """The number of points with torsional friction."""
        return self.layout.torsional

    @property
    def rolling(self) -> int:
        """The number of points with rolling friction."""
        return self.layout.rolling

    @property
    def intervals(self) -> int:
        """The number of rows with dry friction."""
        return len(self.dry_bounds)

    @cached_property
    def normals(self) -> tuple[int, ...]:
        """The rows of the normals."""
        return tuple(rows[2] for rows in self.layout.friction)

    @cached_property
    def bilateral(self) -> slice:
        """The rows of the mechanism's constraints."""
        start = sum(len(rows) for rows in self.layout.friction)
        return slice(start, start + self.mechanism.m)

    @cached_property
    def stop_rows(self) -> tuple[int, ...]:
        """The rows of the joints' limits."""
        return self.layout.rows(NonNegative)


@dataclass(frozen=True)
class ParametricScene(Scene, Parametric):
    """The scene of a mechanism whose model has parameters."""

    @property
    def nparameters(self) -> int:
        """Number of parameters."""
        found: int = self._parametric.nparameters
        return found

    def parameters(self) -> Any:
        """The parameters (nparameters,) that the model has unless others are given."""
        return self._parametric.parameters()

    def with_parameters(self, parameters: Any) -> Scene:
        """The scene with these parameters (nparameters,)."""
        mechanism = self._parametric.with_parameters(parameters)
        return Scene(mechanism, self.contacts, self.limits, self.joint_friction, self.as_in_mujoco)

    @property
    def _parametric(self) -> Any:
        return self.mechanism


def _spots(contact: Contact, midway: bool) -> list[Spot]:
    found = []
    for k, corner in enumerate(contact.corners):
        axes = contact.axes()
        plane = Placement.of(axes, contact.height * axes[:, 2]) if contact.against == WORLD_FRAME else Placement()
        found.append(
            Spot(
                contact.frame,
                contact.against,
                rows=ROWS[: contact.rows],
                placement=Placement.of(p=corner),
                placement2=plane,
                radius=contact.radius,
                midway=midway,
                name=contact.label if len(contact.corners) == 1 else f"{contact.label}_{k + 1}",
            )
        )
    return found
