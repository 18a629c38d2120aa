"""The same robot in other units of length, mass and time, and what becomes of its coordinates, torques and forces.

`Units(length=L, mass=M, time=T)` multiplies every length by L, every mass by M and every time by T; angles stay. With
powers of two this is exact, so that an algorithm in which no number has a hidden unit gives the same bits. Factors are
arrays to be multiplied with numbers in the old units:

    units = Units(length=2.0**10, mass=2.0**-3)
    found = dl.aba(units.model(robot), units.q(robot) * q, units.v(robot) * v, units.tau(robot) * tau)
    expected = units.a(robot) * dl.aba(robot, q, v, tau)

    units.mechanism(held)           # a robot with its constraints; what becomes of its rows:
    units.row_position(held), units.row_velocity(held), units.row_acceleration(held)
    units.row_force(held), units.delassus(held), units.row_compliance(held)     # also of `proximal`, row by row
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import delassus as dl
from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.basis.frame_constraint import FrameConstraint
from delassus.constraints.basis.reference import MovingReference
from delassus.model.equality import Equality, JointCoupling
from delassus.model.joints import Helical
from delassus.model.model import Model
from delassus.model.parts import Geometry, Joint, Mimic, Posture
from delassus.model.placement import Inertia, Placement


@dataclass(frozen=True)
class Units:
    """A change of units: how much larger the numbers of lengths, masses and times become."""

    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0

    # --- factors of coordinates and what belongs to them ----------------------------------------------------------

    @property
    def energy(self) -> float:
        """Of energies, and of torques."""
        return self.mass * self.length**2 / self.time**2

    @property
    def gravity(self) -> float:
        """Of accelerations of points."""
        return self.length / self.time**2

    def q(self, model: Model) -> Any:
        """Of configurations (nq,)."""
        return self._powers([power for joint in model.independent for power in powers_of_q(joint)])

    def way(self, model: Model) -> Any:
        """Of differences of configurations (nv,)."""
        return self._powers([power for joint in model.independent for power in powers_of_v(joint)])

    def v(self, model: Model) -> Any:
        """Of velocities (nv,)."""
        return self.way(model) / self.time

    def a(self, model: Model) -> Any:
        """Of accelerations (nv,)."""
        return self.way(model) / self.time**2

    def tau(self, model: Model) -> Any:
        """Of generalised forces (nv,)."""
        return self.energy / self.way(model)

    def mass_matrix(self, model: Model) -> Any:
        """Of mass matrices (nv, nv)."""
        return derivative(self.tau(model), self.a(model))

    @property
    def twist(self) -> Any:
        """Of displacements along and about the axes of a frame (6,), linear part first."""
        return self._powers([1, 1, 1, 0, 0, 0])

    @property
    def wrench(self) -> Any:
        """Of spatial forces (6,), linear part first."""
        return self.energy / self.twist

    # --- factors of rows ------------------------------------------------------------------------------------------

    def row_position(self, mechanism: dl.Mechanism) -> Any:
        """Of errors of position (m,)."""
        return self._powers([p for c in mechanism.constraints for p in powers_of_rows(c, mechanism.model)])

    def row_velocity(self, mechanism: dl.Mechanism) -> Any:
        """Of velocities (m,)."""
        return self.row_position(mechanism) / self.time

    def row_acceleration(self, mechanism: dl.Mechanism) -> Any:
        """Of accelerations (m,)."""
        return self.row_position(mechanism) / self.time**2

    def row_force(self, mechanism: dl.Mechanism) -> Any:
        """Of constraint forces (m,)."""
        return self.energy / self.row_position(mechanism)

    def row_compliance(self, mechanism: dl.Mechanism) -> Any:
        """Of accelerations per force of the same row (m,): compliance, the proximal parameter."""
        return self.row_acceleration(mechanism) / self.row_force(mechanism)

    def delassus(self, mechanism: dl.Mechanism) -> Any:
        """Of Delassus matrices (m, m)."""
        return derivative(self.row_acceleration(mechanism), self.row_force(mechanism))

    # --- models ---------------------------------------------------------------------------------------------------

    def model(self, model: Model) -> Model:
        """The model, its constraints included; without actuators and tendons, which no algorithm reads."""
        return replace(
            model,
            joints=tuple(self._joint(model, joint) for joint in model.joints),
            frame_list=tuple(replace(f, placement=self.placement(f.placement)) for f in model.frame_list),
            gravity=scaled(model.gravity, self.gravity),
            geometries=tuple(map(self._geometry, model.geometries)),
            constraints=tuple(self._equality(model, c) for c in model.constraints),
            base_inertia=self.inertia(model.base_inertia),
            postures=tuple(Posture(p.name, scaled(p.q, self.q(model))) for p in model.postures),
            actuators=(),
            tendons=(),
        )

    def placement(self, placement: Placement) -> Placement:
        """The same frame."""
        return Placement(placement.rotation, scaled(placement.translation, self.length))

    def inertia(self, body: Inertia) -> Inertia:
        """The same body."""
        return Inertia.of(
            body.mass * self.mass,
            np.array(body.com) * self.length,
            np.array(body.rotational) * (self.mass * self.length**2),
        )

    def _joint(self, model: Model, joint: Joint) -> Joint:
        kind, q, way = joint.kind, self._powers(powers_of_q(joint)), self._powers(powers_of_v(joint))
        per_way = self.energy / way**2
        return replace(
            joint,
            kind=replace(kind, pitch=kind.pitch * self.length) if isinstance(kind, Helical) else kind,
            placement=self.placement(joint.placement),
            inertia=self.inertia(joint.inertia),
            lower=scaled(joint.lower, q),
            upper=scaled(joint.upper, q),
            rest=scaled(joint.rest, q),
            velocity_limit=scaled(joint.velocity_limit, way / self.time),
            effort_limit=scaled(joint.effort_limit, self.energy / way),
            friction=scaled(joint.friction, self.energy / way),
            stiffness=scaled(joint.stiffness, per_way),
            damping=scaled(joint.damping, per_way * self.time),
            armature=scaled(joint.armature, per_way * self.time**2),
            mimic=joint.mimic and self._mimic(model, joint, joint.mimic),
        )

    def _mimic(self, model: Model, joint: Joint, mimic: Mimic) -> Mimic:
        own, source = self._coordinate(joint), self._coordinate(model.joints[mimic.source])
        return replace(mimic, ratio=mimic.ratio * own / source, offset=mimic.offset * own)

    def _coordinate(self, joint: Joint) -> float:
        """Of the one coordinate of a joint."""
        (factor,) = self._powers(powers_of_q(joint))
        return float(factor)

    def _geometry(self, shape: Geometry) -> Geometry:
        friction = scaled(shape.friction, np.array([1.0, self.length, self.length])[: len(shape.friction)])
        size = scaled(shape.size, self.length)
        return replace(shape, placement=self.placement(shape.placement), size=size, friction=friction)

    def _equality(self, model: Model, equality: Equality) -> Equality:
        if not isinstance(equality, JointCoupling):
            return equality
        y = self._coordinate(model.joint(equality.follower))
        x = self._coordinate(model.joint(equality.leader)) if equality.leader else 1.0
        return replace(
            equality,
            coefficients=self._polynomial(equality.coefficients, y, x),
            reference1=equality.reference1 * y,
            reference2=equality.reference2 * x,
        )

    @staticmethod
    def _polynomial(coefficients: tuple[float, ...], y: float, x: float) -> tuple[float, ...]:
        """Of y = Σ cₖ xᵏ, where y and x are multiplied by factors."""
        return tuple(c * y / x**k for k, c in enumerate(coefficients))

    # --- mechanisms -----------------------------------------------------------------------------------------------

    def mechanism(self, mechanism: dl.Mechanism) -> dl.Mechanism:
        """The mechanism."""
        step = mechanism.step and mechanism.step * self.time
        constraints = [self._constraint(mechanism.model, c) for c in mechanism.constraints]
        return dl.Mechanism(self.model(mechanism.model), constraints, step, model_constraints=False)

    def _constraint(self, model: Model, c: Any) -> Constraint:
        row = self._powers(powers_of_rows(c, model))
        common: dict[str, Any] = {
            "acceleration": tuple(c.per_row("acceleration", len(row)) * row / self.time**2),
            "position_gain": tuple(c.per_row("position_gain", len(row)) / self.time**2),
            "velocity_gain": tuple(c.per_row("velocity_gain", len(row)) / self.time),
            "compliance": tuple(c.per_row("compliance", len(row)) * row**2 / self.time**2 / self.energy),
        }
        if isinstance(c, FrameConstraint):
            common |= {name: self.placement(getattr(c, name)) for name in ("placement", "placement2")}
        return replace(c, **common, **self._of_kind(model, c, row))

    def _of_kind(self, model: Model, c: Any, row: Any) -> dict[str, Any]:
        """What one kind of constraint has beside what all have."""
        if isinstance(c, dl.Distance):
            return {"length": c.length * self.length}
        if isinstance(c, dl.Weld):
            return {"target": self._target(c.target)}
        if isinstance(c, (dl.Point, dl.JointLock)):
            return {"position": self._reference(c.position, self.length if isinstance(c, dl.Point) else row)}
        if isinstance(c, dl.Coupling):
            y = self._coordinate(model.joint(c.joint))
            x = self._coordinate(model.joint(c.joint2)) if c.joint2 else 1.0
            coefficients = self._polynomial(c.coefficients, y, x)
            return {"coefficients": coefficients, "reference": c.reference * y, "reference2": c.reference2 * x}
        if isinstance(c, dl.Implicit):
            g, factor = c.g, self.q(model)  # its values stay as they are
            return {"g": lambda kinematics, q, t: g(q / factor, t / self.time)[0], "pattern": None}
        raise TypeError(f"nothing is known of the units of {c!r}.")

    def _reference(self, position: Any, factor: Any) -> Any:
        if isinstance(position, MovingReference):
            return lambda t: factor * position.function(t / self.time)[0]
        return position if position is None else tuple(np.atleast_1d(np.multiply(position, factor)))

    def _target(self, target: Any) -> Any:
        if not isinstance(target, MovingReference):
            return target and self.placement(target)

        def moving(t: Any) -> Any:
            R, p = target.function(t / self.time)
            return R, self.length * p

        return moving

    def _powers(self, powers: list[int]) -> Any:
        return np.array([self.length**power for power in powers])


def powers_of_v(joint: Joint) -> list[int]:
    """For each velocity of a joint, 1 if it is a length per time, 0 if it is an angle per time."""
    return [int(direction < 3) for motion, _, _ in joint.kind.elements for direction in motion.directions]


def powers_of_q(joint: Joint) -> list[int]:
    """For each coordinate of a joint, 1 if it is a length, 0 if it is an angle or a part of a quaternion."""
    return powers_of_v(joint) + [0] * (joint.kind.nq - joint.kind.nv)


def powers_of_rows(c: Any, model: Model) -> list[int]:
    """For each row of a constraint, 1 if its error is a length, 0 if it is an angle or a number without unit."""
    if isinstance(c, FrameConstraint):
        return [int(row < 3) for row in c.rows]
    if isinstance(c, dl.Coupling):
        return powers_of_v(model.joint(c.joint))
    if isinstance(c, dl.JointLock):
        start, powers = model.v_starts[model.joint_index(c.joint)], powers_of_v(model.joint(c.joint))
        return [powers[v - start] for v in c.velocities(model)]
    return [0] * c.count(model)


def derivative(of: Any, by: Any) -> Any:
    """Factors of the derivatives (n, m) of numbers with factors (n,) by numbers with factors (m,)."""
    return np.divide.outer(of, by)


def scaled(numbers: Any, factor: Any) -> Any:
    """A tuple of numbers times a factor, or one for each; an empty one stays empty."""
    with np.errstate(over="ignore"):  # the largest number stands for no limit in Pinocchio; so does infinity
        return tuple((np.array(numbers) * factor).tolist()) if numbers else ()
