"""`Scene`: a robot and the sources of all rows that a step of time solves for.

Sources, in the order of their rows:

    contact points      named points of the robot against a plane or another frame (`Contact`), each with its own rows
    contact slots       the nearest candidates among shapes on the ground and pairs of shapes, up to `max_contacts`
    bilateral           constraints of the mechanism: closed loops, welds, gears
    one-sided           constraints g(q) ≥ 0 of the mechanism: ropes, stops, what users write
    joint limits        the nearer limit of each joint, or the nearest `max_limits` of them
    joint friction      dry friction of joints

A contact has the rows t1, t2, n, then spin about n with torsional friction, and roll about t1 and t2 with rolling
friction. What a scene says is compiled in; coefficients, normals and time steps are inputs of a state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from delassus.compiler.graph.parameters import ParametricComposite
from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.basis.frame_constraint import WORLD_FRAME
from delassus.constraints.kinds.joint_lock import JointLock
from delassus.constraints.kinds.unilateral import UnilateralRow
from delassus.constraints.mechanism.mechanism import Mechanism, ParametricMechanism
from delassus.contact.cones.kinds import Cone, Free, Friction, Interval, NonNegative
from delassus.contact.cones.layout import Layout
from delassus.contact.cones.tangents import contact_axes
from delassus.geometry.candidates import Shape
from delassus.geometry.classes import PairClass
from delassus.geometry.collisions import Collision
from delassus.geometry.fields import Field
from delassus.model.description import HasModel
from delassus.model.parameter_names import ACTUATOR_KINDS
from delassus.model.transmission import Actuator, Tendon
from delassus.step.actuators.activation import count_activations
from delassus.step.sources.contact import Contact
from delassus.step.sources.contact_point import ContactPoint, Plane, contact_points
from delassus.step.sources.impedances import SceneImpedances
from delassus.step.sources.limits import JointLimit, dry_joints, limits_of
from delassus.step.sources.quaternion_weld import as_in_mujoco

TALLIES: Final = 3
"""Numbers that a control period keeps of each tracked shape: mean and peak force, air time."""

CONTACTS: Final = 8
"""Slots for contacts of shapes by default."""

ARTICULATED: Final = "articulated"
"""Name of the method that solves a step inside the articulated-body recursion (`step.articulated`)."""

FALLBACKS: Final = {ARTICULATED: "auto", "sweeps": "newton"}
"""Methods of steps that leave some states unsolved, and those that solve these."""


@dataclass(frozen=True)
class Scene(HasModel):
    """A robot and everything that constrains a step of time.

    Attributes:
        mechanism: The robot and its bilateral constraints.
        contacts: Named contact points, without their coefficients.
        max_limits: Slots for joint limits; None for one each, 0 for joints without limits.
        joint_friction: Whether joints have their dry friction.
        as_in_mujoco: Whether bodies touch halfway between their surfaces, and welds are quaternions, as in MuJoCo.
        shapes: Shapes that may touch the ground.
        collisions: Pairs of shapes that may touch each other, each with code of its own.
        pair_classes: Further pairs, in classes that are looked through by loops.
        field: The grid of a height field; None for a plane.
        max_contacts: Slots for contacts of shapes; None for `CONTACTS`.
        contact_rows: Rows of a contact slot: 3, 4 with torsional friction, 6 with rolling friction.
        own_friction: The coefficients (sliding, torsional, rolling) of each candidate, None where the ground's apply;
            empty if they do everywhere.
        bounces: Whether contacts have restitution.
        actuators: What the controls drive; without any, the joints themselves.
        substeps: Time steps in a control period.
        method: The contact solver of slots, by its name.
        pushed: Frames that wrenches act on from outside.
        reduced: Candidates of the reduced contact set; None for the full set. Candidates outside it are monitored, and
            a step in which one of them would penetrate is solved again with the full set. So are joint limits, which
            the reduced set does not have, except where the method is `ARTICULATED`.
        impedances: How soft rows are, for MuJoCo's law of contact; None for rigid ones. Contacts and joint limits then
            act on their gaps as a step begins, and every contact set has all joint limits.
        tracked: Shapes and bodies whose contacts are tallied over a control period, by name (`points.statistics`).
        many_bodies: How many contact slots a scene of many free bodies has, whose steps are loops over bodies, pairs
            and contacts (`step.bodies`); None for straight code.
        memory_size: Numbers that a policy in the step carries from period to period (`period.hooks`).
    """

    mechanism: Mechanism
    contacts: tuple[Contact, ...] = ()
    max_limits: int | None = 0
    joint_friction: bool = False
    as_in_mujoco: bool = False
    shapes: tuple[Shape, ...] = ()
    collisions: tuple[Collision, ...] = ()
    pair_classes: tuple[PairClass, ...] = ()
    field: Field | None = None
    max_contacts: int | None = 0
    contact_rows: int = 3
    own_friction: tuple[tuple[float | None, float | None, float | None], ...] = ()
    bounces: bool = False
    actuators: tuple[Actuator, ...] = ()
    substeps: int = 1
    method: str = "auto"
    pushed: tuple[str, ...] = ()
    reduced: tuple[int, ...] | None = None
    many_bodies: int | None = None
    impedances: SceneImpedances | None = None
    tracked: tuple[str, ...] = ()
    memory_size: int = 0

    def __new__(cls, mechanism: Any = None, *_: Any, **__: Any) -> Scene:
        """A scene, with parameters if its mechanism has some."""
        return object.__new__(ParametricScene if isinstance(mechanism, ParametricMechanism) else cls)

    @property
    def model(self) -> Any:  # type: ignore[override]
        """The model of the robot."""
        return self.mechanism.model

    @property
    def fallback(self) -> str | None:
        """The method of steps that its own one leaves unsolved; None if there is none."""
        return FALLBACKS.get(self.method)

    @property
    def is_soft(self) -> bool:
        """Whether rows are compliant, by MuJoCo's contact law."""
        return self.impedances is not None

    # --- contact points -----------------------------------------------------------------------------------------------

    @cached_property
    def contact_points(self) -> tuple[ContactPoint, ...]:
        """The named contact points."""
        return tuple(point for contact in self.contacts for point in contact_points(contact, self.as_in_mujoco))

    @property
    def points(self) -> int:
        """The number of contacts: named points, and slots."""
        return len(self.contact_points) + self.slots

    @cached_property
    def row_mechanism(self) -> Mechanism:
        """The robot with all rows but those of contact slots as constraints."""
        constraints = (*self.contact_points, *self.bilateral_constraints, *self.stops, *self._dry[0])
        return Mechanism(self.model, constraints, model_constraints=False)

    def on_planes(self, normal: Any, height: Any) -> Mechanism:
        """`row_mechanism` with contact points against other planes in the world: (points, 3) and (points,)."""
        if normal is None and height is None:
            return self.row_mechanism
        points: list[ContactPoint] = []
        for k, point in enumerate(self.contact_points):
            if point.frame2 != WORLD_FRAME:
                points.append(point)
                continue
            axes = point.placement2.R if normal is None else contact_axes(normal[k])
            far = axes[:, 2] @ point.placement2.p if height is None else height[k]
            points.append(replace(point, plane=Plane(axes, far * axes[:, 2])))
        constraints = (*points, *self.row_mechanism.constraints[len(points) :])
        return Mechanism(self.model, constraints, model_constraints=False)

    # --- contact slots ------------------------------------------------------------------------------------------------

    @cached_property
    def ground_candidates(self) -> int:
        """Places that may touch the ground; they are the first of the candidates."""
        return sum(shape.count for shape in self.shapes)

    @cached_property
    def fixed_candidates(self) -> int:
        """Places that are looked at in every state, each at its own number."""
        return self.ground_candidates + sum(collision.count for collision in self.collisions)

    @cached_property
    def candidates(self) -> int:
        """Places that may touch: on the ground, of collisions, of classes of pairs, in the order of their numbers."""
        return self.fixed_candidates + sum(pairs.count for pairs in self.pair_classes)

    @cached_property
    def state_candidates(self) -> int:
        """Places that are looked at in a state: of classes of pairs, those of the nearest pairs."""
        return self.fixed_candidates + sum(pairs.slot_count for pairs in self.pair_classes)

    @property
    def has_pairs(self) -> bool:
        """Whether shapes may touch each other."""
        return bool(self.collisions or self.pair_classes)

    @property
    def slots(self) -> int:
        """Contacts that are solved for."""
        return self.full_slots if self.reduced is None else len(self.reduced)

    @property
    def full_slots(self) -> int:
        """Contacts of the full set."""
        if self.many_bodies is not None:
            return self.many_bodies
        return min(self.state_candidates, CONTACTS if self.max_contacts is None else self.max_contacts)

    @property
    def has_fixed_slots(self) -> bool:
        """Whether each slot always has the same candidate: there is one for each, or the set is reduced."""
        if self.many_bodies is not None:
            return False
        return self.reduced is not None or self.has_slot_for_all

    @property
    def has_slot_for_all(self) -> bool:
        """Whether there is a slot for each candidate; pairs of classes take turns."""
        return self.slots == self.candidates and not self.pair_classes

    @cached_property
    def slot_candidates(self) -> tuple[int, ...]:
        """The candidates (full_slots,) of the slots where they are fixed: those of the reduced set first."""
        first = range(self.full_slots) if self.reduced is None else self.reduced
        return (*first, *(k for k in range(self.candidates) if k not in first))[: self.full_slots]

    @cached_property
    def candidate_shapes(self) -> tuple[tuple[Shape, Shape | None, str], ...]:
        """The shape of each candidate, the shape that it touches (None for the ground), and a name."""
        candidates: list[tuple[Shape, Shape | None, str]] = []
        for shape in self.shapes:
            candidates += [(shape, None, shape.geometry.name)] * shape.count
        for collision in self.collisions:
            candidates += [(collision.shape, collision.other, collision.name)] * collision.count
        for pairs in self.pair_classes:
            candidates += pairs.place_shapes()
        return tuple(candidates)

    # --- other sources ------------------------------------------------------------------------------------------------

    @cached_property
    def bilateral_constraints(self) -> tuple[Constraint, ...]:
        """The constraints of the mechanism."""
        own = self.mechanism.constraints
        return tuple(map(as_in_mujoco, own)) if self.as_in_mujoco else own

    @property
    def one_sided(self) -> tuple[UnilateralRow, ...]:
        """One-sided constraints, a row each."""
        return self.mechanism.one_sided

    @cached_property
    def stops(self) -> tuple[UnilateralRow | JointLimit, ...]:
        """All rows with a gap that are no contacts, where each joint limit has a slot: `one_sided` and joint limits."""
        return (*self.one_sided, *self.joint_limits)

    @cached_property
    def joint_limits(self) -> tuple[JointLimit, ...]:
        """The limits of joints, whether there is a slot for all of them or not."""
        return () if self.max_limits == 0 else limits_of(self.model)

    @property
    def limit_slots(self) -> int:
        """Joint limits that are solved for; the reduced set has none, unless they are laws of joints, which cost
        little."""
        count = len(self.joint_limits)
        if self.reduced is not None and not self.is_soft and self.method != ARTICULATED:
            return 0
        return count if self.max_limits is None else min(count, self.max_limits)

    @cached_property
    def _dry(self) -> tuple[tuple[Constraint, ...], tuple[float, ...]]:
        return dry_joints(self.model) if self.joint_friction else ((), ())

    @property
    def joint_friction_rows(self) -> tuple[Constraint, ...]:
        """The rows of dry friction, by joints and tendons."""
        return self._dry[0]

    @property
    def friction_bounds(self) -> tuple[float, ...]:
        """The dry friction [N·m, N] of these rows."""
        return self._dry[1]

    @cached_property
    def friction_dofs(self) -> tuple[int, ...]:
        """The velocities of joints with dry friction, by their numbers; their rows come before those of tendons."""
        rows = [row for row in self._dry[0] if isinstance(row, JointLock)]
        return tuple(self.model.v_slice(row.joint).start + k for row in rows for k in row.rows)

    @cached_property
    def friction_tendons(self) -> tuple[Tendon, ...]:
        """The tendons with dry friction."""
        return tuple(tendon for tendon in self.model.tendons if tendon.friction > 0.0 and self.joint_friction)

    # --- rows ---------------------------------------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        """The cones of all rows."""
        cones: list[Cone] = [Friction(contact.rows) for contact in self.contacts for _ in contact.corners]
        cones += [Friction(self.contact_rows)] * self.slots
        pushing = len(self.one_sided) + self.limit_slots
        others = (Free, self.mechanism.m), (NonNegative, pushing), (Interval, len(self.friction_bounds))
        cones += [kind(count) for kind, count in others if count]
        return Layout(tuple(cones))

    @property
    def m(self) -> int:
        """The number of rows."""
        return self.layout.m

    @property
    def torsional(self) -> int:
        """The number of contacts with torsional friction."""
        return self.layout.torsional

    @property
    def rolling(self) -> int:
        """The number of contacts with rolling friction."""
        return self.layout.rolling

    @property
    def intervals(self) -> int:
        """The number of rows of joint friction."""
        return len(self.friction_bounds)

    @cached_property
    def contact_end(self) -> int:
        """The number of rows of contacts; they come first."""
        return sum(len(rows) for rows in self.layout.friction)

    @cached_property
    def normals(self) -> tuple[int, ...]:
        """The rows of contacts along their normals."""
        return tuple(rows[2] for rows in self.layout.friction)

    @cached_property
    def bilateral(self) -> slice:
        """The rows of the mechanism's constraints."""
        return slice(self.contact_end, self.contact_end + self.mechanism.m)

    @cached_property
    def stop_rows(self) -> tuple[int, ...]:
        """The rows of one-sided constraints and joint limits."""
        return self.layout.rows(NonNegative)

    @property
    def limit_rows(self) -> tuple[int, ...]:
        """The rows of joint limits."""
        return self.stop_rows[len(self.one_sided) :]

    @cached_property
    def friction_rows(self) -> tuple[int, ...]:
        """The rows of joint friction; they come last."""
        return self.layout.rows(Interval)

    @cached_property
    def unilateral_rows(self) -> list[int]:
        """The rows that push and do not pull: normals of contacts, one-sided constraints, limits of joints."""
        return [*self.normals, *self.stop_rows]

    # --- reduced and full contact sets --------------------------------------------------------------------------------

    @cached_property
    def full(self) -> Scene:
        """The scene with its full contact set and its joint limits."""
        return self if self.reduced is None else replace(self, reduced=None)

    @cached_property
    def rows_in_full(self) -> tuple[int, ...]:
        """Where the rows of this contact set are among those of the full one."""
        if self.reduced is None:
            return tuple(range(self.m))
        full = self.full
        kept = (*range(full.m)[full.bilateral], *full.stop_rows[: len(self.stop_rows)], *full.friction_rows)
        return (*range(self.contact_end), *kept)

    # --- sizes of arrays, as kernels have them: ufuncs need one element at least --------------------------------------

    @property
    def nu(self) -> int:
        """The number of controls."""
        return len(self.actuators) or len(self.model.actuated_velocities)

    @cached_property
    def na(self) -> int:
        """The number of activations: of actuators that have a state."""
        return count_activations(self.actuators)

    @property
    def impulse_size(self) -> int:
        """Elements of arrays of impulses of the full set, with activations, tallies and memory behind them."""
        return max(self.full.m + self.na + self.tally_size + self.memory_size, 1)

    @property
    def tally_size(self) -> int:
        """Numbers that are tallied of tracked shapes."""
        return TALLIES * len(self.tracked)

    @property
    def slot_size(self) -> int:
        """Elements of arrays of contact slots of the full set."""
        return max(self.full_slots, 1)

    @property
    def control_size(self) -> int:
        """Elements of arrays of controls."""
        return max(self.nu, 1)

    @property
    def pushes(self) -> int:
        """The number of wrenches from outside."""
        return max(len(self.pushed), 1)

    @property
    def field_rows(self) -> int:
        """Of the height field's grid."""
        return 1 if self.field is None else self.field.rows

    @property
    def field_columns(self) -> int:
        """Of the height field's grid."""
        return 1 if self.field is None else self.field.columns


@dataclass(frozen=True)
class ParametricScene(Scene, ParametricComposite):
    """The scene of a mechanism whose model has parameters."""

    def with_parameters(self, parameters: Any) -> Scene:
        """The scene with these parameters (nparameters,)."""
        options = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "mechanism"}
        mechanism = self.parametric_part.with_parameters(parameters)
        actuators, changed = list(self.actuators), mechanism.model.actuators
        for part in self.parametric_part.parametric_part.parts:
            if part.kind in ACTUATOR_KINDS:  # in the order of the model's
                fields = ("gain", "bias") if part.kind == "servo" else ("force_range",)
                numbers = {name: getattr(changed[part.index], name) for name in fields}
                actuators[part.index] = replace(actuators[part.index], **numbers)
        options["actuators"] = tuple(actuators)
        return Scene(mechanism, **options)

    @property
    def parametric_part(self) -> Any:
        """The part with parameters: the mechanism."""
        return self.mechanism
